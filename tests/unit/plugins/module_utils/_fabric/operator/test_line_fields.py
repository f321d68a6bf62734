"""What a release line lacks is an error that names the lines that have it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import LINES, lines_with, varying
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import line_fields
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import macvlan, registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

KINDS = ("NicClusterPolicy", "NicNodePolicy", "IPPool", "CIDRPool", "MacvlanNetwork")


def made(kind: str, path: str) -> dict[str, Any]:
    """An object with one field set."""
    value: Any = "x"
    for part in reversed(path.split(".") if path else []):
        value = {part[:-2]: [{}, value]} if part.endswith("[]") else {part: value}
    return {"kind": kind, "metadata": {"name": "one"}, **(value if path else {})}


FIELDS = [(kind, path) for kind in KINDS for path in varying(kind)]


@given(st.sampled_from(FIELDS), st.sampled_from(list(LINES.values())))
def test_a_field_is_refused_where_it_is_missing_and_nowhere_else(field: tuple[str, str], line: Any) -> None:
    kind, path = field
    if line.has(kind, path):
        line_fields.check(line, [made(kind, path)])
        return
    with pytest.raises(InputError) as caught:
        line_fields.check(line, [made(kind, path), made(kind, path)])
    (said,) = str(caught.value).splitlines()
    assert all(name in said for name in lines_with(kind, path))
    # Fields beside it, and those that it is inside of, are no concern.
    line_fields.check(line, [made(kind, "spec.other") if path else made("Other", "")])


MISSING = [
    (
        "25.10",
        made("IPPool", "spec.perNodeExclusions"),
        "IPPool one: release line 25.10 of the network operator does not have the field spec.perNodeExclusions of"
        " IPPool. Lines that have it: 26.4, 26.7. Set rdma_fabric.operator.release to a release of one of them, or"
        " change the option of rdma_fabric that requires it",
    ),
    (
        "26.1",
        made("NicNodePolicy", ""),
        "NicNodePolicy one: release line 26.1 of the network operator does not have the kind NicNodePolicy. Lines that"
        " have it: 26.4, 26.7. Set rdma_fabric.operator.release to a release of one of them, or change the option of"
        " rdma_fabric that requires it",
    ),
    (
        "26.7",
        made("NicClusterPolicy", "spec.secondaryNetwork.ipamPlugin"),
        "NicClusterPolicy one: release line 26.7 of the network operator does not have the field"
        " spec.secondaryNetwork.ipamPlugin of NicClusterPolicy. No supported line has it, so change the option of"
        " rdma_fabric that requires it",
    ),
]


@pytest.mark.parametrize(("line", "item", "message"), MISSING)
def test_messages(line: str, item: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        line_fields.check(LINES[line], [item])
    assert str(caught.value) == message


def test_the_plan_of_a_network_model_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def pools(intent: Any, rails: Any, block_size: int) -> list[dict[str, Any]]:
        spec = {"subnet": "10.0.0.0/8", "perNodeBlockSize": 2, "perNodeExclusions": []}
        return [{"kind": "IPPool", "metadata": {"name": "one"}, "spec": spec}]

    changed = {**vars(macvlan.PROFILE), "name": "toy", "pools": pools}
    monkeypatch.setitem(registry.PROFILES, "toy", type(macvlan.PROFILE)(**changed))
    fabric = {"supernet": "192.168.0.0/16", "profile": "toy"}
    assert plan({**fabric, "operator": {"release": "26.4.2"}}, fleet(2))["objects"]
    with pytest.raises(InputError, match=r"does not have the field spec.perNodeExclusions of IPPool"):
        plan({**fabric, "operator": {"release": "26.1.2"}}, fleet(2))
