# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the testers on bare hosts: one state per step of a measurement, through the connection of the host."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.text.converters import to_bytes
from ansible.plugins.action import ActionBase

from ..module_utils._controller import host_tester, progress_lines
from ..module_utils._fabric.measure.schedule import mesh
from ..module_utils._fabric.measure.schedule.progress import Progress

SPEC: dict[str, Any] = {
    "state": {
        "type": "str",
        "required": True,
        "choices": [
            "recovered",
            "prepared",
            "delivered",
            "scheduled",
            "started",
            "awaited",
            "collected",
            "ports",
            "absent",
        ],
    },
    "folder": {"type": "str", "required": True},
    "unit": {"type": "str", "required": True},
    "run": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 120},
    "evidence": {"type": "path"},
    "script": {"type": "path"},
    "rails": {"type": "list", "elements": "dict"},
    "reading": {"type": "str", "choices": ["before", "after"]},
    "continued": {"type": "str", "default": ""},
    "leftover": {"type": "dict"},
    "resumed": {"type": "bool", "default": False},
    "pass": {"type": "int"},
    "rounds": {"type": "int"},
    "slot": {"type": "int"},
    "seconds": {"type": "int"},
    "lines": {"type": "list", "elements": "str"},
    "lead": {"type": "int", "default": 0},
    "deliveries": {"type": "list", "elements": "dict", "default": []},
    "start": {"type": "float"},
    "not_started": {"type": "str", "default": ""},
    "verdicts": {"type": "dict", "default": {}},
}
# A tester may be some seconds behind the announced end.
GRACE = 3


class Late(BaseException):
    """The host did not answer in time. No Exception, so that no connection plugin takes it for an error of its own."""


@contextlib.contextmanager
def limit(seconds: int) -> Iterator[None]:
    """End what runs inside after so many seconds, as the keyword ``timeout`` of a task does."""

    def late(_signal: int, _frame: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.alarm(seconds)
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class ActionModule(ActionBase):
    """A host that does not answer costs its own results, not those of the others: it is noted and the run goes on."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(SPEC)

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "skipped": True}
        _checked, self._params = self.validate_argument_spec(SPEC)
        self._vars = task_vars
        self._host = task_vars["inventory_hostname"]
        given = self._params
        self._tester = host_tester.Tester(given["folder"], given["unit"], given["run"])
        self._hold = host_tester.hold(given["timeout"], len(task_vars["ansible_play_hosts_all"]))
        self._silent = ""
        result.update(changed=False, **getattr(self, f"_{given['state']}")())
        if self._silent:
            result["warnings"] = [f"{self._host}: {self._silent}"]
        return result

    def _recovered(self) -> dict[str, Any]:
        """Fetch the complete log of a run that did not end; the tester of this run would remove it."""
        given, left = self._params, self._params["leftover"]
        tester = host_tester.Tester(given["folder"], given["unit"], left["run"])
        found = self._raw(host_tester.find(tester, left["pass"], bool(left["ended"]), most=left["largest"]))
        if found.get("rc") == host_tester.IN_USE and given["resumed"]:
            return {"failed": True, "msg": f"{self._host}: {found['stdout'].strip()}"}
        if self._host not in left["hosts"] or found.get("rc") != 0:
            return {"fetched": False}
        fetched = self._fetch(tester.log(left["pass"]), Path(left["folder"]) / f"{self._host}.log")
        if fetched.get("failed"):
            return {"failed": True, "msg": f"{self._host}: {fetched.get('msg', '')}"}
        return {"fetched": "dest" in fetched}

    def _prepared(self) -> dict[str, Any]:
        given = self._params
        rails = host_tester.rails_text(given["rails"])
        argv = host_tester.prepare(
            self._tester, rails, self._hold, now=progress_lines.clock(), continued=given["continued"]
        )
        answer = self._command(argv, Path(given["script"]).read_text(encoding="utf-8"))
        well = answer.get("rc") == 0
        text = str(answer["stdout"]) if well else host_tester.why_unstarted(answer)
        self._note("describe", "log" if well else "error", text)
        return {"prepared": well}

    def _delivered(self) -> dict[str, Any]:
        given = self._params
        folder = self._folder()
        if mesh.is_mesh(given["lines"]):
            (folder / mesh.MARK).touch(mode=0o640)
        began = progress_lines.clock()
        # The start follows when all hosts have their schedules, after as much time again.
        hold = self._hold_for_pass(self._params["lead"] + len(self._vars["ansible_play_hosts_all"]))
        argv = host_tester.deliver(self._tester, hold, began)
        answer = self._command(argv, host_tester.batch_text(given["pass"], given["slot"], given["lines"]))
        return {"delivered": answer.get("rc") == 0, "began": began, "ended": progress_lines.clock()}

    def _scheduled(self) -> dict[str, Any]:
        """Settle when all testers start, on the controller's clock; the folder tells that the pass was played."""
        self._folder()
        lead = host_tester.lead(self._params["lead"], self._params["deliveries"])
        return {"start": progress_lines.clock() + lead, "start_in": lead}

    def _started(self) -> dict[str, Any]:
        # Without a module, since a start of Python here would make some hosts late.
        given, tester = self._params, self._tester
        now = progress_lines.clock()
        hold = self._hold_for_pass(max(0, math.ceil(given["start"] - now)))
        answer = self._raw(
            host_tester.start(tester, given["pass"], given["seconds"], begin=given["start"], now=now, hold_for=hold)
        )
        well = answer.get("rc", 0) == 0
        return {"why": "" if well else f"{answer['stderr']}{answer['stdout']}".strip()}

    def _awaited(self) -> dict[str, Any]:
        given = self._params
        progress = Progress("hosts", given["pass"], given["rounds"], given["slot"], given["verdicts"])
        end = given["start"] + progress.seconds + GRACE
        show = progress_lines.Lines(progress, given["start"], self._display.display)
        while progress_lines.clock() < end:
            time.sleep(max(0.0, min(show.next_in(), end - progress_lines.clock())))
            show.show()
        return {}

    def _collected(self) -> dict[str, Any]:
        given, number = self._params, self._params["pass"]
        ended = self._raw(host_tester.collect(self._tester, number, len(given["lines"])))
        path = self._folder() / f"{self._host}.log"
        fetched = self._fetch(self._tester.log(number), path) if ended.get("rc") == 0 else {}
        if "dest" not in fetched:
            self._note(f"pass-{number}", "error", host_tester.why_no_log(given["not_started"], ended, fetched))
        return {"fetched": "dest" in fetched}

    def _ports(self) -> dict[str, Any]:
        """Read what the ports of this host show, which pods on it do not see; without an answer they are not known."""
        given = self._params
        argv = host_tester.ports(host_tester.rails_text(given["rails"]))
        answer = self._command(argv, Path(given["script"]).read_text(encoding="utf-8"))
        folder = f"ports-{given['reading']}"
        (Path(given["evidence"]) / folder).mkdir(mode=0o750, parents=True, exist_ok=True)
        if answer.get("rc") == 0:
            self._note(folder, "log", str(answer["stdout"]))
        return {"read": answer.get("rc") == 0}

    def _absent(self) -> dict[str, Any]:
        """Without a run, whatever is there: then a host that does not answer is an error, something may run there."""
        answer = self._raw(host_tester.remove(self._tester), needed=not self._tester.run)
        if self._silent and not self._tester.run:
            return {"failed": True, "msg": f"{self._host}: {self._silent}"}
        if answer.get("rc") and not self._tester.run:
            return {"failed": True, "msg": host_tester.why_unstarted(answer) or "non-zero return code", **answer}
        return {}

    def _hold_for_pass(self, until_start: int) -> int:
        """Return for how many seconds the host is reserved for a pass that begins in so many."""
        return self._hold + until_start + int(self._params["seconds"])

    def _folder(self) -> Path:
        path = Path(self._params["evidence"]) / f"pass-{self._params['pass']}"
        path.mkdir(mode=0o750, exist_ok=True)
        return path

    def _note(self, folder: str, suffix: str, text: str) -> None:
        """Write what the judge reads of this host; bytes that are no text stay what they are."""
        path = Path(self._params["evidence"]) / folder / f"{self._host}.{suffix}"
        path.touch(mode=0o640)
        path.write_bytes(to_bytes(f"{text}\n", errors="surrogate_or_replace"))

    def _raw(self, text: str, needed: bool = False) -> dict[str, Any]:
        return self._answer(lambda: self._low_level_execute_command(text, executable=False), needed)

    def _command(self, argv: list[str], text: str) -> dict[str, Any]:
        arguments = {"argv": argv, "stdin": text}
        run = self._execute_module
        return self._answer(lambda: run("ansible.legacy.command", arguments, task_vars=self._vars))

    def _fetch(self, source: str, path: Path) -> dict[str, Any]:
        task = self._task.copy()
        task.args = {"src": source, "dest": str(path), "flat": True}
        fetch = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.fetch",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return self._answer(lambda: fetch.run(task_vars=self._vars))

    def _answer(self, run: Callable[[], Mapping[str, Any]], needed: bool = False) -> dict[str, Any]:
        """Return what the host answered, only ``msg`` where it did not."""
        seconds = self._params["timeout"]
        try:
            with limit(seconds):
                return dict(run())
        except Late:
            self._silent = f"no answer within {seconds} s"
        except AnsibleConnectionFailure as error:
            if needed:
                raise
            self._silent = str(error)
        except AnsibleError as error:
            return {"msg": str(error)}
        return {"msg": self._silent}
