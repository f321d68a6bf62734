"""Every playbook ends with an error when a run selects no host of the fabric or no task, whatever else it does."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from tests.unit.support.playbook_files import plays
from tests.unit.support.real_play import ROOT, ansible_playbook

# These need no hosts, so an inventory without them is no error (test_lint.py, test_interrupted.py).
WITHOUT_HOSTS = ("lint", "report")
BOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml") if path.stem not in WITHOUT_HOSTS)
FABRIC = "{{ rdma_group | default('rdma_hosts') }}"


@pytest.mark.parametrize("name", BOOKS)
def test_every_playbook_begins_with_the_guard_and_is_on_the_group(name: str) -> None:
    first, *others = plays(f"{name}.yml")
    (guard,), (recorded,) = plays("plays/guard.yml"), plays("plays/recorded.yml")
    assert first == guard
    assert [
        play["name"] for play in others if play not in (guard, recorded) and not play["hosts"].startswith(FABRIC)
    ] == []


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
    (["gpufabric.rdma.site", "--start-at-task", "nonsense"], "--start-at-task leaves out the checks and the plan."),
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


def test_a_group_is_read_as_ansible_selects_the_hosts_of_a_play(tmp_path: Path) -> None:
    """One run with a play for each name, 2 s."""
    odd = ("dc1:gpu", "fab,b", "fab[0]", "gp*", "!x", "~y", "twin")
    groups: dict[str, object] = {name: {"hosts": {f"host-{number}": {}}} for number, name in enumerate(odd)}
    groups |= {"fab": {"hosts": {"z-1": {}}}, "gpu": {"hosts": {"z-2": {}}}, "web": {"hosts": {"twin": {}}}}
    groups["fine"] = {"children": {"fab": {}, "gpu": {}}}
    # Extra variables hide those of the inventory.
    groups["mine"] = {"hosts": {"z-3": {}}, "vars": {"rdma_group": "{{ fabric }}"}}
    wrong: list[object] = ["", None, ["fab"]]
    absent = {"ansible.builtin.add_host": {"name": "z-1", "groups": "rdma_absent"}, "run_once": True}
    planned = {"ansible.builtin.set_fact": {"__rdma_planned": {}}, "delegate_to": "localhost", "delegate_facts": True}
    plays = [
        {"hosts": "all:localhost", "gather_facts": False, "vars": {"rdma_group": group}, "tasks": [*before, {
            "block": [{"gpufabric.rdma.run_scope": None}, {"ansible.builtin.debug": {"msg": f"FINE {group}"}}],
            "rescue": [{"ansible.builtin.debug": {"msg": "REFUSED {{ ansible_failed_result.msg }}"}}], "run_once": True,
        }]} for group, before in (*((name, []) for name in (*odd, "fine", "mine", *wrong)),
                                  ("fine", [absent]), ("fine", [{**planned, "run_once": True}]))
    ]  # fmt: skip
    (tmp_path / "play.yml").write_text(json.dumps(plays))
    (tmp_path / "groups.json").write_text(json.dumps({"all": {"children": groups}}))
    extra = ("-e", "fabric=other", "-c", "local")
    done = ansible_playbook(tmp_path, "-i", tmp_path / "groups.json", tmp_path / "play.yml", *extra, COLUMNS="2000")
    said = re.findall(r"(?:FINE|REFUSED) [^\n]*", done.stdout)
    assert [text.split(",")[0] for text in said] == [
        "REFUSED The group dc1:gpu has the hosts host-0",
        "REFUSED The group fab",
        *(f"REFUSED The group {name} has the hosts host-{number}" for number, name in enumerate(odd) if number > 1),
        'FINE fine"',
        "REFUSED rdma_group is other in the inventory (on z-3)",
        *("REFUSED rdma_group: expected the name of a group of the inventory",) * 3,
        "REFUSED The inventory has a group rdma_absent (z-1). A run adds unreachable hosts to a group of this name and"
        ' leaves its hosts out. Rename the group"',
        'FINE fine"',
    ], done.stdout + done.stderr
