# make demo: the lab, site.yml on it, the report.   make test: every gate, one summary.
PYTHON ?= python3

.PHONY: help demo test check docs install lab-up lab-reset lab-down soak bench clean

help:
	@echo "make demo      build the lab, run playbooks/site.yml on it, print the verdict and where the report is"
	@echo "make test      lint, sanity, unit tests, lab scenarios; one summary at the end"
	@echo "make check     the gates that need no lab"
	@echo "make soak      repeated and random faults on the lab (long)"
	@echo "make bench     figures: tasks, requests, plan and facts at scale, accuracy of diagnosis, pods of 1000 hollow nodes, preparing 200 hosts"
	@echo "make docs      build the site of the documentation"
	@echo "make lab-up, lab-reset, lab-down    the virtual lab alone;  make clean    remove what was built"

# Installs missing Debian packages where it may (root on Debian or Ubuntu); names them all otherwise.
install:
	@$(PYTHON) -m tests.lab install
	@$(PYTHON) tests/tools/environment.py

demo: install
	@$(PYTHON) -m tests.tools.demo

test: install
	@$(PYTHON) -m tests.check

check:
	@$(PYTHON) -m tests.check --no-lab

soak: install
	@.venv/bin/python -m tests.tools.soak

docs: install
	@.venv/bin/python -m tests.tools.docs_site && echo "docs: .cache/docs-site/index.html"

bench: install
	@.venv/bin/python -m tests.bench

lab-up lab-reset lab-down: lab-%:
	@$(PYTHON) -m tests.lab $*

clean:
	@$(PYTHON) -m tests.lab clean
	rm -rf .venv .cache .demo .lab
