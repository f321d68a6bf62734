"""Recording, applying and verifying: what is merged, what is reported, and what a power cut leaves."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.change import Change
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import CommandError, ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import converge as subject
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import files, restore


def test_what_did_not_take_effect_is_named_by_place_and_setting() -> None:
    found = {"up": True, "count": 2, "vfs": [{"trust": False, "mac": "a"}, {"trust": True, "mac": "b"}]}
    wanted = {"up": True, "count": 2, "vfs": [{"trust": True, "mac": "a"}, {"trust": True, "mac": "b"}]}
    change = Change(
        before={"files": {"/a": "1\n2\n", "/b": "1"}, "pfs": {"18": found, "19": {"count": 2}}, "drivers": "old"},
        after={"files": {"/a": "2\n2\n"}, "pfs": {"18": wanted, "19": {"count": 3}}, "drivers": "new"},
    )
    with pytest.raises(CommandError) as caught:
        subject.verify(change, may_wait=("drivers",))
    assert str(caught.value) == (
        "after the change files /a is a text of 2 lines starting with '1', expected a text of 2 lines starting with "
        "'2'; files /b is 1, expected missing; pfs 18 vfs 0 trust is False, expected True; pfs 19 count is 2, "
        "expected 3. Check the kernel log and the system journal"
    )


def test_what_was_recorded_first_wins_and_nothing_is_lost() -> None:
    earlier = {
        "a": {"before": {"mtu": 1500, "list": [1]}, "set": {"mtu": 9000}, "owners": []},
        "gone": 1,
        "value": 1,
        "modules": ["x", "y"],
        "name": {"before": "eth0", "set": ["rail0"]},
    }
    later = {
        "a": {"before": {"mtu": 9000, "list": [2], "up": True}, "set": {"mtu": 4200, "up": True}, "owners": ["b"]},
        "value": 2,
        "new": 3,
        "modules": ["y", "z"],
        "name": {"before": "rail0", "set": ["rail1"]},
    }
    assert subject.merge(earlier, later) == {
        "a": {"before": {"mtu": 1500, "list": [1], "up": True}, "set": {"mtu": 4200, "up": True}, "owners": []},
        "gone": 1,
        "value": 1,
        "new": 3,
        "modules": ["x", "y", "z"],
        "name": {"before": "eth0", "set": ["rail0", "rail1"]},
    }


class PowerCut(BaseException):
    """Nothing can be done any more; no code of the product knows it."""


@dataclasses.dataclass
class Power:
    """Ends at one moment, right before or right after a write; ``left`` counts the moments until then."""

    left: int = 1_000_000

    def around(self, effect: Callable[..., None]) -> Callable[..., None]:
        def effected(*args: Any, **kwargs: Any) -> None:
            self.moment()
            effect(*args, **kwargs)
            self.moment()

        return effected

    def moment(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise PowerCut


@dataclasses.dataclass(frozen=True)
class ToyPlan:
    change: Change
    record: Mapping[str, Any]
    reasons: tuple[str, ...] = ()


@dataclasses.dataclass
class Toy:
    """A topic whose settings are files; each is written in two steps, as hardware may need."""

    root: Path
    power: Power = dataclasses.field(default_factory=Power)

    def tell(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            (self.root / name).write_text(value)

    def now(self) -> dict[str, str]:
        return {name: (self.root / name).read_text() for name in NAMES}

    def run(self, desired: Mapping[str, str], cut: int = 1_000_000) -> bool:
        """Converge, nothing ``desired`` being state absent; return whether it came to its end."""
        self.power.left = cut
        with contextlib.ExitStack() as stack:
            for name in ("write", "remove"):
                stack.enter_context(patch.object(files, name, self.power.around(getattr(files, name))))
            stack.enter_context(patch.object(files, "_flush", lambda path: None))
            roots = files.Roots.under(str(self.root))
            try:
                subject.converge(
                    "toy",
                    roots,
                    False,
                    read_plan=lambda record: self.read_plan(record, desired),
                    apply=self.apply,
                    restores=not desired,
                    unsettled=lambda plan, _earlier, merged: restore.unsettled(
                        merged, {"toy": plan.change.before}, {"toy": plan.change.after}
                    ),
                )
            except PowerCut:
                return False
        return True

    def read_plan(self, record: Mapping[str, Any], desired: Mapping[str, str]) -> ToyPlan:
        now, entry = self.now(), record.get("toy", {"before": {}, "set": {}})
        gone = {name: value for name, value in entry["before"].items() if name not in desired}
        after = {**now, **restore.values(gone, entry["set"], now), **desired}
        before = {name: entry["before"].get(name, now[name]) for name in desired}
        return ToyPlan(Change(now, after), {"toy": {"before": before, "set": dict(desired)}} if desired else {})

    def apply(self, plan: ToyPlan) -> None:
        for name, value in plan.change.after.items():
            if plan.change.before[name] != value:
                for text in ("between", value):
                    self.power.around((self.root / name).write_text)(text)


NAMES = ("mtu", "up", "pfc")
VALUES = st.sampled_from(("a", "b", "c"))
STATES = st.fixed_dictionaries({name: VALUES for name in NAMES})
DESIRED = st.dictionaries(st.sampled_from(NAMES), VALUES)
CUT = st.integers(1, 60)


@contextlib.contextmanager
def toy(values: Mapping[str, str]) -> Iterator[Toy]:
    with tempfile.TemporaryDirectory() as folder:
        made = Toy(Path(folder))
        made.tell(values)
        yield made


@given(STATES, DESIRED, DESIRED, CUT, CUT)
def test_a_run_that_was_cut_off_is_finished_by_the_next_and_can_be_restored(
    first: dict[str, str], earlier: dict[str, str], desired: dict[str, str], cut: int, again: int
) -> None:
    with toy(first) as host:
        host.run(earlier, cut)
        host.run(desired, again)
        assert host.run(desired)
        assert host.now() == {**first, **desired}
        host.run({}, cut)
        assert host.run({})
        assert host.now() == first
        assert not (host.root / "var/lib/gpufabric").exists()


def test_every_moment_of_a_change_and_of_its_removal() -> None:
    first, desired = dict.fromkeys(NAMES, "a"), {"mtu": "b", "up": "c"}
    for cut in itertools.count(1):
        with toy(first) as host:
            host.run({"mtu": "b", "pfc": "b"})
            changed = host.run(desired, cut)
            assert host.run(desired) and host.now() == {**first, **desired}
            removed = host.run({}, cut)
            assert host.run({}) and host.now() == first
            if changed and removed:
                break
    # The holder of the lock, the record twice, three settings in two steps each: more than one moment for each of them.
    assert cut > 14


@given(STATES, DESIRED.filter(bool), CUT, st.data())
def test_what_another_tool_changed_meanwhile_is_not_restored(
    first: dict[str, str], desired: dict[str, str], cut: int, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(desired)))
    with toy(first) as host:
        assert host.run(desired)
        host.tell({name: "of another tool"})
        host.run({}, cut)
        assert host.run({})
        assert host.now() == {**first, name: "of another tool"}


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    host = Toy(tmp_path)
    host.tell(dict.fromkeys(NAMES, "a"))
    before = sorted(tmp_path.rglob("*"))
    roots = files.Roots.under(str(tmp_path))
    done = subject.converge(
        "toy",
        roots,
        True,
        read_plan=lambda record: host.read_plan(record, {"mtu": "b"}),
        apply=host.apply,
        restores=False,
    )
    assert done.result["changed"] is True and done.last is done.first
    assert sorted(tmp_path.rglob("*")) == before and host.now() == dict.fromkeys(NAMES, "a")


def test_a_change_that_does_not_take_effect_keeps_the_record(tmp_path: Path) -> None:
    host = Toy(tmp_path)
    host.tell(dict.fromkeys(NAMES, "a"))
    roots = files.Roots.under(str(tmp_path))
    with pytest.raises(CommandError, match="after the change mtu is a, expected b. "):
        subject.converge(
            "toy",
            roots,
            False,
            read_plan=lambda record: host.read_plan(record, {"mtu": "b"}),
            apply=lambda plan: None,
            restores=False,
        )
    assert '"mtu": "a"' in (tmp_path / "var/lib/gpufabric/toy.json").read_text()


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("release", "booted"),
    [
        ('ID="rhcos"\nPRETTY_NAME="Red Hat Enterprise Linux CoreOS 418"\n', False),
        ("ID=rhel\nVARIANT_ID=coreos\n", False),
        ("ID=fedora\n", True),
    ],
)
def test_a_system_that_is_an_image_is_not_changed(tmp_path: Path, release: str, booted: bool, check: bool) -> None:
    """The first text has the keys of RHCOS 4.13 as ComplianceAsCode/content records them; the others are by hand."""
    host = Toy(tmp_path)
    host.tell(dict.fromkeys(NAMES, "a"))
    for folder in ("etc", "run"):
        (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / "etc/os-release").write_text(release)
    if booted:
        (tmp_path / "run/ostree-booted").touch()
    roots = files.Roots.under(str(tmp_path))

    def converged(mtu: str) -> Any:
        return subject.converge(
            "toy",
            roots,
            check,
            read_plan=lambda record: host.read_plan(record, {"mtu": mtu}),
            apply=host.apply,
            restores=False,
        )

    def restored_in_part() -> Any:
        return subject.converge(
            "toy",
            roots,
            check,
            read_plan=lambda record: dataclasses.replace(host.read_plan(record, {}), record=record),
            apply=host.apply,
            restores=True,
        )

    with pytest.raises(ConflictError, match="the system of this host is an image .* MachineConfig"):
        converged("b")
    assert host.now() == dict.fromkeys(NAMES, "a") and not (tmp_path / "var/lib/gpufabric/toy.json").exists()
    (tmp_path / "etc/os-release").write_text("ID=debian\n")
    (tmp_path / "run/ostree-booted").unlink(missing_ok=True)
    assert converged("b").result["changed"]
    # What was changed before the host became such a system is restored, also while some of the record is kept.
    (tmp_path / "etc/os-release").write_text("ID=fedora\nVARIANT_ID=coreos\n")
    assert restored_in_part().result["changed"] is not check
    assert host.now() == dict.fromkeys(NAMES, "a")
