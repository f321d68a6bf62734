"""Every playbook ends with an error when a run selects no host of the fabric or no task, whatever else it does."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from playbook_files import plays
from real_play import ROOT, ansible_playbook

BOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
FABRIC = "{{ rdma_group | default('rdma_hosts') }}"


@pytest.mark.parametrize("name", BOOKS)
def test_every_playbook_begins_with_the_guard_and_is_on_the_group(name: str) -> None:
    first, *others = plays(f"{name}.yml")
    (guard,) = plays("plays/guard.yml")
    assert first == guard
    assert [play["name"] for play in others if play != guard and not play["hosts"].startswith(FABRIC)] == []


def run(tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A run on hosts that nobody can contact."""
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {
        "children": {"rdma_hosts": {"hosts": {"gpu-1": {}, "gpu-2": {}}}, "web": {"hosts": {"web-1": {}}}},
        "vars": {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_connection": "none.such.connection"},
    }}))  # fmt: skip
    return ansible_playbook(tmp_path, "-i", tmp_path / "hosts.json", *args, COLUMNS="2000")


@pytest.mark.parametrize(("args", "message"), [
    (["gpufabric.rdma.validate", "-e", "rdma_group=rdma_host"], "The inventory has no group rdma_host,"),
    (["gpufabric.rdma.abort", "--limit", "web-1"], "--limit web-1 matches no host of the group rdma_hosts (gpu-1,"),
    (["gpufabric.rdma.site", "--tags", "rdma_valdate"], (
        "--tags rdma_valdate: no task has this tag. This playbook has the tags rdma_validate, deploy,")),
    (["gpufabric.rdma.reboot", "--skip-tags", "always"], "--skip-tags always or tagged leaves out the checks"),
])  # fmt: skip
def test_a_run_that_selects_nothing_fails(tmp_path: Path, args: list[str], message: str) -> None:
    """About 1.3 s each: only Ansible itself shows what it evaluates where nothing is selected."""
    done = run(tmp_path, *args)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Playbook -> the tags of its tasks other than the validation of arguments. About 3 s, once."""
    names = [f"gpufabric.rdma.{name}" for name in BOOKS]
    text = run(tmp_path_factory.mktemp("listed"), *names, "--list-tasks").stdout
    found: dict[str, set[str]] = defaultdict(set)
    name = ""
    for book, tags in re.findall(r"^playbook: .*/(\w+)\.yml$|^ {6}.*\tTAGS: \[(.*)\]$", text, re.MULTILINE):
        name = book or name
        found[name] |= set(tags.split(", ")) if tags and "always" not in tags.split(", ") else set()
    return found


def test_the_reference_has_the_tags_of_every_playbook(listed: dict[str, set[str]]) -> None:
    text = (ROOT / "docs/inventory.md").read_text().split("## Limits and tags")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert {name: set(tags.split(", ")) - {"-"} for name, tags in rows[1:]} == listed


def test_every_documented_tag_selects_a_task(listed: dict[str, set[str]]) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "roles").glob("*/README.md")]
    text = "\n".join(page.read_text() for page in pages)
    (line,) = re.findall(r"\*\*Tags\*\*: (.*)", text)
    named = {*re.findall(r"`(\w+)`", line), *(path.name for path in (ROOT / "roles").iterdir())}
    for tags in re.findall(r"--(?:skip-)?tags[ =]([a-z_,]+)", text):
        named |= set(tags.split(","))
    assert named - set().union(*listed.values()) - {"always"} == set()
