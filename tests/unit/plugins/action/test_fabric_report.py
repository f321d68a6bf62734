"""The action plugin fabric_report, played for real: the module's files and the page that the controller renders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import report_factory as factory
from tests.unit.support.real_play import ansible_playbook

PYTHON = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
HOSTILE = "</script><b>&\"' {{ 7 * 191 }} {% raw %}"


def play(tmp_path: Path, *args: str, **params: Any) -> subprocess.CompletedProcess[str]:
    # Data of a run are never templates: they come from a file, as those of a host do.
    made = {"plan": factory.plan(3, 1), "results": factory.results(3, 1), **params}
    (tmp_path / "made.json").write_text(json.dumps(made))
    given = {name: f"{{{{ made.{name} }}}}" for name in made}
    read = {"ansible.builtin.slurp": {"src": str(tmp_path / "made.json")}, "register": "read"}
    task = {
        "gpufabric.rdma.fabric_report": {"path": str(tmp_path / "report"), **given},
        "vars": {"made": "{{ read.content | b64decode | from_json }}"},
        "register": "answer",
    }
    keys = {"ansible.builtin.debug": {"msg": "KEYS {{ answer.keys() | sort | join(' ') }}"}}
    (tmp_path / "play.yml").write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "vars": PYTHON, "tasks": [read, task, keys]}])
    )
    return ansible_playbook(tmp_path, "-vv", "-i", "localhost,", "-c", "local", tmp_path / "play.yml", *args)


def test_the_page_is_written_beside_the_other_files_and_is_not_in_the_answer(tmp_path: Path) -> None:
    done = play(tmp_path, warnings=[HOSTILE])
    assert done.returncode == 0, done.stdout
    folder = tmp_path / "report"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["report.json", "report.html", "junit.xml", "metrics.prom", "report.txt", "plan.json"]
    )
    page = folder / "report.html"
    assert page.stat().st_mode & 0o777 == 0o640
    text = page.read_text()
    assert text.count("</script>") == 1 and "<b>&" not in text
    assert "&lt;/script&gt;&lt;b&gt;&amp;&#34;&#39; {{ 7 * 191 }} {% raw %}" in text
    assert '"page"' not in done.stdout
    (keys,) = (line for line in done.stdout.splitlines() if "KEYS " in line)
    assert " page " not in keys and " files " in keys


def test_check_mode_writes_no_page(tmp_path: Path) -> None:
    done = play(tmp_path, "--check")
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("redact", ["everything"])
def test_an_error_of_the_module_is_the_error_of_the_task(redact: str, tmp_path: Path) -> None:
    done = play(tmp_path, redact=[redact])
    assert done.returncode != 0 and f"redact: {redact} is not known" in done.stdout
    assert not (tmp_path / "report").exists()
