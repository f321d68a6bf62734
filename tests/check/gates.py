"""What each gate runs. A gate is a name and a function that writes to a log and says passed or not."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.check import processes, sanity
from tests.tools import environment

REPO = environment.REPO
FORMATTED = ("plugins", "tests", "molecule")


@dataclass(frozen=True)
class Gate:
    """One gate: `run(log)` returns None when passed, otherwise a short reason.

    `note(text of the log)` is what the summary says beside that, "" for nothing. `beside`: it is long, so it runs
    beside the scenarios at a low priority. `builds`: it starts no lab, but builds programs of it that are not cached.
    """

    name: str
    run: Callable[[IO[str]], str | None]
    uses_lab: bool = False
    note: Callable[[str], str] | None = None
    beside: bool = False
    builds: bool = False


def command(*argv: str, env: dict[str, str] | None = None) -> Callable[[IO[str]], str | None]:
    """A gate that is one command: exit code 0 passes."""

    def run(log: IO[str]) -> str | None:
        log.write(f"$ {' '.join(argv)}\n")
        log.flush()
        merged = {**environment.environ(), **(env or {})}
        code = processes.run(argv, cwd=REPO, env=merged, stdout=log, stderr=subprocess.STDOUT)
        return None if code == 0 else f"exit code {code}"

    return run


def at_once(*commands: Callable[[IO[str]], str | None]) -> Callable[[IO[str]], str | None]:
    """A gate of commands that run at the same time; the log of the first one comes last."""

    def run(log: IO[str]) -> str | None:
        low = processes.is_low()

        def one(own: Callable[[IO[str]], str | None], file: IO[str]) -> str | None:
            if low:
                processes.lower()
            return own(file)

        files = [Path(f"{log.name}.{number}") for number in range(len(commands))]
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(path.open("w")) for path in files]
            pool = stack.enter_context(ThreadPoolExecutor(len(commands)))
            reasons = list(pool.map(one, commands, opened))
        for path in reversed(files):
            log.write(path.read_text(errors="replace"))
            path.unlink()
        return next(filter(None, reasons), None)

    return run


def skipped(log: str) -> str:
    """How many tests pytest skipped, by the last line of its log: "3 skipped", or "" when it skipped none."""
    lines = log.rstrip().splitlines() or [""]
    found = re.search(r"\b\d+ skipped\b", lines[-1])
    return found[0] if found else ""


def ruff(log: IO[str]) -> str | None:
    """Lint and formatting; code blocks of Markdown pages are not formatted."""
    return command("ruff", "check", ".")(log) or command("ruff", "format", "--check", *FORMATTED)(log)


def ansible_lint(log: IO[str]) -> str | None:
    """Lint through the collections tree, where playbooks and modules are found by their full names."""
    # The playbooks refuse an empty inventory already when they are loaded.
    env = {"ANSIBLE_INVENTORY": "inventories/example"}
    return command("ansible-lint", "--offline", "--profile", "production", "--strict", env=env)(log)


def shellcheck(log: IO[str]) -> str | None:
    """Every tracked or new file that is a shell script; fixtures are as they were found."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=REPO, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.splitlines() if not name.startswith("tests/fixtures/")]
    scripts = [name for name in names if is_shell(REPO / name)]
    return command("shellcheck", "--severity=style", *scripts)(log)


def is_shell(path: Path) -> bool:
    if not path.is_file() or path.suffix not in ("", ".sh"):
        return False
    with path.open("rb") as file:
        first = file.readline(64)
    return first.startswith(b"#!") and first.split(b"/")[-1].split()[-1] in (b"sh", b"bash")


# Set while nobody has used the lab since it came up: the first scenario then needs no reset.
untouched = threading.Event()


def lab_up(log: IO[str]) -> str | None:
    """Build or start the lab; it goes on beside the gates that do not need it."""
    failed = command(sys.executable, "-m", "tests.lab", "up")(log)
    if not failed and "is up already" not in Path(log.name).read_text():
        untouched.set()
    return failed


def scenario(name: str) -> Gate:
    """A molecule scenario on the lab."""
    # Molecule works in a folder of its own below MOLECULE_EPHEMERAL_DIRECTORY; keep it inside the checkout.
    folder = REPO / ".cache" / "molecule" / name
    env = {"MOLECULE_EPHEMERAL_DIRECTORY": str(folder), "LAB_PYTHON": sys.executable}

    def run(log: IO[str]) -> str | None:
        # What a run that was killed noted there makes the next one leave out the reset of the lab.
        shutil.rmtree(folder, ignore_errors=True)
        own = {**env, "LAB_IS_UNTOUCHED": "yes" if untouched.is_set() else ""}
        untouched.clear()
        return command("molecule", "test", "--scenario-name", name, env=own)(log)

    return Gate(f"scenario {name}", run, uses_lab=True)


def scenarios() -> list[Gate]:
    """Those that `make test` has time for; `make soak` has the others."""
    return [scenario(name) for name in ("sriov", "faults", "site")]


def all_gates() -> list[Gate]:
    """All of them; those that need no lab run first."""
    return [
        Gate("ruff", ruff),
        Gate("mypy", mypy, beside=True),
        Gate("yamllint", command("yamllint", "--strict", ".")),
        Gate("shellcheck", shellcheck),
        Gate("oxlint", command("oxlint", "--deny-warnings", "roles")),
        Gate("ansible-lint", ansible_lint, beside=True),
        Gate("unit", command("pytest", "tests/unit"), note=skipped, beside=True),
        Gate("installation", command("pytest", "tests/installation"), note=skipped, beside=True),
        Gate("collection docs", collection_docs, beside=True),
        Gate("docs site", command("python", "-m", "tests.tools.docs_site"), beside=True),
        *sanity_gates(),
        # The last one beside the scenarios: by then the lab has built the programs that both need.
        # Those of pods mostly wait, so they have a cluster of their own.
        Gate("cluster", cluster(), note=skipped, beside=True, builds=True),
        *scenarios(),
    ]


def cluster() -> Callable[[IO[str]], str | None]:
    """Tests of pods mostly wait, so they run beside the others, on a cluster of their own."""
    pods = "tests/cluster/test_pods.py"
    others = command("pytest", "tests/cluster", f"--ignore={pods}", "--durations=0")
    return at_once(others, command("pytest", pods, "--durations=0"))


def collection_docs(log: IO[str]) -> str | None:
    """What Galaxy would render: no page of a module or role may be malformed; the changelog too."""
    lint = ("lint-collection-docs", "--plugin-docs", "--validate-collection-refs=self")
    return command("antsibull-docs", *lint, str(REPO))(log) or command("antsibull-changelog", "lint")(log)


def sanity_gates() -> list[Gate]:
    return [Gate(f"sanity {core.name}", core.run, beside=True) for core in sanity.cores()]


def mypy(log: IO[str]) -> str | None:
    """The plugins under their Ansible name, then the lab and the gates."""
    tree = environment.COLLECTIONS
    plugins = command("mypy", "-p", "ansible_collections.gpufabric.rdma.plugins", env={"MYPYPATH": str(tree)})(log)
    return plugins or command("mypy", "tests/lab", "tests/check", "tests/tools/environment.py")(log)
