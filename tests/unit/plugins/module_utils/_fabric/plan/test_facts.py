"""Facts of a broken or hostile host: it counts as a host without facts, is named, and the others are planned."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.support import sysfs_tree
from tests.unit.support.plan_factory import host_facts

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.identity import read_hosts
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.facts import read_facts
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

NET = {"supernet": "192.168.0.0/16", "absent_hosts": "report"}
OWN = "ports[1]."
RATE = "expected a number from 0 to 10000000"


def in_port(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda facts: facts["ports"][1].update(values)


def in_facts(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda facts: facts.update(values)


BAD: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (in_facts(schema=1), "schema: expected 3 (run rdma_facts of this collection again), found 1 (number)"),
    (in_facts(ports="x"), 'ports: expected a list, found "x" (text)'),
    (in_facts(ports=[None]), "ports[0]: expected a dict, found nothing (null)"),
    (in_facts(ports=[{}] * 1025), "ports: expected a list of 1024 items at most, found 1025 (number)"),
    (
        lambda facts: facts["ports"].append(facts["ports"][0]),
        'ports[3].pci: expected each PCI address once, found "0000:01:00.0" (text)',
    ),
    (lambda facts: facts.pop("machine_id"), "machine_id: expected a value, found nothing (null)"),
    (in_facts(machine_id={}), "machine_id: expected a machine ID, found a dict"),
    (in_facts(machine_id="\x1b[2J"), 'machine_id: expected a machine ID, found "?[2J" (text)'),
    (in_facts(hostname=["x"]), "hostname: expected text, found a list"),
    (in_facts(networks=["zz"]), 'networks[0]: expected an IP address with prefix length, found "zz" (text)'),
    (in_facts(drivers={"mlx5_core": 1}), "drivers.mlx5_core: expected text, found 1 (number)"),
    (in_facts(drivers={"\x1b": "1"}), 'drivers: expected the name of a driver, found "?" (text)'),
    (in_facts(gpus=[{}]), "gpus[0].pci: expected a value, found nothing (null)"),
    (in_facts(rdma_devices=None), "rdma_devices: expected a list, found nothing (null)"),
    (in_port(max_speed="fast"), f'{OWN}max_speed: {RATE}, found "fast" (text)'),
    (in_port(max_speed=float("inf")), f"{OWN}max_speed: {RATE}, found inf (number)"),
    (in_port(max_speed=float("nan")), f"{OWN}max_speed: {RATE}, found nan (number)"),
    (in_port(max_speed=True), f"{OWN}max_speed: {RATE}, found true (true or false)"),
    (in_port(speed=10**5000), f"{OWN}speed: {RATE}, found a number of more than 40 digits"),
    (in_port(addresses=["x"]), f'{OWN}addresses[0]: expected an IP address with prefix length, found "x" (text)'),
    (
        in_port(addresses=["10.0.0.1/33"]),
        f'{OWN}addresses[0]: expected an IP address with prefix length, found "10.0.0.1/33" (text)',
    ),
    (
        in_port(addresses=["fe80::1%\x1b[2J/64"]),
        f'{OWN}addresses[0]: expected an IP address with prefix length, found "fe80::1%?[2J/64" (text)',
    ),
    (in_port(addresses=[5]), f"{OWN}addresses[0]: expected an IP address with prefix length, found 5 (number)"),
    (
        in_port(netdev="\x1b[2J;rm -rf /\n"),
        f'{OWN}netdev: expected the name of a network device, found "?[2J;rm -rf / " (text)',
    ),
    (
        in_port(pci="0000:18:00.0; rm"),
        f'{OWN}pci: expected a PCI address such as 0000:18:00.0, found "0000:18:00.0; rm" (text)',
    ),
    (
        in_port(driver="\x1b[2J\x1b[31mowned"),
        f'{OWN}driver: expected the name of a driver, found "?[2J?[31mowned" (text)',
    ),
    (in_port(duty={}), f"{OWN}duty: expected text, found a dict"),
    (in_port(uses=[{"kind": "route"}]), f"{OWN}uses[0].text: expected a value, found nothing (null)"),
    (
        in_port(switch={"system": "a", "chassis": "a", "port": "a", "max_frame": -1}),
        f"{OWN}switch.max_frame: expected a whole number from 0 to 99999, found -1 (number)",
    ),
    (in_port(switch={"a": 1}), f"{OWN}switch.system: expected a value, found nothing (null)"),
    (in_port(vfs={"rate": "x"}), f'{OWN}vfs.rate: {RATE}, found "x" (text)'),
    (in_port(pcie=None), f"{OWN}pcie: expected a dict, found nothing (null)"),
    (in_port(mac={"x": 1}), f"{OWN}mac: expected a MAC address, found a dict"),
    (
        in_port(configured={"rail": 4, "addresses": []}),
        f"{OWN}configured.rail: expected the name of a rail, found 4 (number)",
    ),
    (
        in_facts(lost_rails={"rail0": "x"}),
        'lost_rails.rail0: expected a PCI address such as 0000:18:00.0, found "x" (text)',
    ),
]


def fleet(change: Callable[[dict[str, Any]], None] = lambda facts: None) -> dict[str, Any]:
    hosts = {f"gpu-{number}": {"facts": host_facts(number), "rdma_host": {}} for number in (1, 2, 3)}
    change(hosts["gpu-2"]["facts"])
    return hosts


@pytest.mark.parametrize(("change", "problem"), BAD)
def test_a_host_with_invalid_facts_is_named_and_the_others_are_planned(
    change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    made = plan(NET, fleet(change))
    assert made["absent"] == ["gpu-2"]
    assert made["warnings"] == [
        f"gpu-2 returned invalid facts ({problem}); it is reported as no_data",
        "gpu-[1,3] get new addresses, and those of gpu-2 are unknown: check for duplicate addresses",
    ]
    with pytest.raises(InputError) as caught:
        plan({**NET, "absent_hosts": "stop"}, fleet(change))
    assert str(caught.value) == (
        f"1 of the hosts returned invalid facts (gpu-2: {problem}). Repair them, take them out of the group, "
        "or set rdma_fabric.absent_hosts: report to measure the others and report these as no_data"
    )
    # Of facts of an earlier run nothing is known either.
    made = plan({**NET, "rail_count": 2}, fleet(change), limit=["gpu-1", "gpu-3"])
    assert made["absent"] == [] and made["hosts"]["gpu-2"]["rails"][0]["pci"] is None
    assert made["warnings"] == [
        f"gpu-2, which is outside of this run, returned invalid facts ({problem}); it is planned without them"
    ]


def test_facts_that_are_no_dict() -> None:
    assert read_facts("x") == (None, 'ansible_facts.rdma: expected a dict, found "x" (text)')
    assert read_facts({}) == read_facts(None) == (None, "")


def test_valid_facts_are_what_they_were_and_what_nobody_uses_is_left_out() -> None:
    facts = host_facts(1, gpus=[{"pci": "0000:1b:00.0", "path": ["pci0000:00"], "numa_node": None, "vendor": "10de"}])
    found, problem = read_facts(facts)
    assert found and problem == "" and "modules" not in found
    for own, port in zip(found["ports"], facts["ports"]):
        assert {**port, **{key: value for key, value in own.items() if key not in ("vfs", "uplinks", "ats")}} == port
    assert found["gpus"] == [{"pci": "0000:1b:00.0", "path": ["pci0000:00"], "numa_node": None}]


def test_text_for_people_is_made_plain() -> None:
    facts = host_facts(1)
    facts["ports"][1].update(duty="\x1b[2Jx\ny", uses=[{"kind": "tcp", "text": "a" * 5000}])
    found = read_facts(facts)[0]
    assert found and found["ports"][1]["duty"] == "?[2Jx y" and len(found["ports"][1]["uses"][0]["text"]) == 300


def test_the_versions_of_invalid_facts_are_not_known() -> None:
    made = plan(NET, fleet())
    facts = {name: host["facts"] for name, host in fleet(in_port(driver="\x1b[2J")).items()}
    found = read_hosts(made, facts)
    assert found["gpu-1"]["perftest"] == "6.10" and found["gpu-1"]["rails"]["rail0"]["driver"] == "mlx5_core"
    assert found["gpu-2"]["perftest"] is None and found["gpu-2"]["rails"]["rail0"]["driver"] is None


@pytest.mark.parametrize("machine", ["gpu-server-8-rails", "lab-igb-host", "odd-host"])
def test_the_facts_of_real_hosts_are_valid(machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = json.loads(json.dumps(sysfs_tree.materialise(machine, tmp_path, monkeypatch).inventory().to_dict()))
    found, problem = read_facts(facts)
    assert found and found["ports"] and problem == ""


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.sampled_from(["0000:18:00.0", "route to 1.2.3.4/8 \x1b", "999.1.1.1/8", 10**5000, "9" * 5000, ["::/0"], [None]]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in facts."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, item in items for place in places(item, (*path, key))]
    return [*inner, path] if path else inner


FULL = host_facts(2, rails=1, gpus=[{"pci": "0000:1b:00.0", "path": ["pci0000:00"], "numa_node": 0}])
FULL["ports"][1].update(
    addresses=["192.168.0.2/24"],
    uses=[{"kind": "route", "text": "route to 10.9.0.0/16"}],
    switch={"system": "leaf1", "chassis": "aa", "port": "Ethernet1", "max_frame": 1518},
)


@settings(max_examples=150)
@given(st.sampled_from(places(FULL)), VALUES)
def test_no_value_ends_in_a_traceback_or_reaches_a_terminal(place: tuple[Any, ...], value: Any) -> None:
    """Takes about half a second."""
    hosts = {"gpu-1": {"facts": host_facts(1, rails=1)}, "gpu-2": {"facts": copy.deepcopy(FULL)}}
    inside: Any = hosts["gpu-2"]["facts"]
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    try:
        made = plan(NET, hosts)
    except FabricError as error:
        assert str(error).isprintable()
        return
    assert all(line.isprintable() for line in (*made["warnings"], *made["table"]))


def test_facts_that_an_earlier_version_recorded_have_no_partition() -> None:
    facts = host_facts(1)
    for port in facts["ports"]:
        del port["pkey"]
    found, problem = read_facts(facts)
    assert found and problem == "" and {port["pkey"] for port in found["ports"]} == {None}
    facts["ports"][0]["pkey"] = "partition"
    assert read_facts(facts) == (None, 'ports[0].pkey: expected a partition key, found "partition" (text)')
