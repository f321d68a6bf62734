"""Recording, applying and verifying: what is merged, what is reported, and what a power cut leaves."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.change import Change
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import CommandError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import converge as subject


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
