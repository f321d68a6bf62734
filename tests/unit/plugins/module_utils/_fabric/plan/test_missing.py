"""Ports that single hosts lack: what is planned without them, and when that is refused. Cost: about 5 s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tests.unit.support.plan_factory import configured, fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

Hosts = dict[str, dict[str, Any]]
FABRIC = {"supernet": "192.168.0.0/16", "absent_hosts": "report"}
LISTED = [{"name": f"rail{rail}", "pci": [rail_port(rail)["pci"]]} for rail in range(4)]


def pull(hosts: Hosts, name: str, *rails: int) -> None:
    """Take the NICs of rails out of a host."""
    gone = {rail_port(rail)["pci"] for rail in rails}
    facts = hosts[name]["facts"]
    facts["ports"] = [port for port in facts["ports"] if port["pci"] not in gone]


def planned(hosts: Hosts, **more: Any) -> dict[str, Any]:
    return plan({**FABRIC, **more}, hosts)


def rails_of(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {rail["rail"]: rail for rail in found["hosts"][name]["rails"]}


def why(found: Mapping[str, Any], name: str) -> dict[str, str]:
    missing = found["hosts"][name]["missing"]
    assert {rail: one["resource"] for rail, one in missing.items()} == {rail: f"rdma_{rail}" for rail in missing}
    return {rail: one["reason"] for rail, one in missing.items()}


def same_but(found: Mapping[str, Any], whole: Mapping[str, Any], lost: Mapping[str, set[str]]) -> None:
    """Every port that is there has the rail, address and expectation that it has in the complete fleet."""
    for name, host in whole["hosts"].items():
        gone = lost.get(name, set())
        assert rails_of(found, name) == {rail["rail"]: rail for rail in host["rails"] if rail["rail"] not in gone}
        assert set(found["hosts"][name].get("missing", {})) == gone
        assert found["hosts"][name]["number"] == host["number"]
    for rail, sides in whole["expectations"].items():
        kept = {name: side for name, side in sides.items() if rail not in lost.get(name, ())}
        assert found["expectations"][rail] == kept
    for key in ("rails", "objects", "nodes", "operator", "endpoints", "tests", "absent"):
        assert found[key] == whole[key], key


@pytest.mark.parametrize("wish", [{}, {"rail_count": 4}, {"rails": LISTED}])
def test_a_missing_nic_of_one_host_is_a_finding(wish: dict[str, Any]) -> None:
    hosts, whole = fleet(4, rails=4), fleet(4, rails=4)
    pull(hosts, "gpu-0003", 2)
    found = planned(hosts, **wish)
    same_but(found, planned(whole, **wish), {"gpu-0003": {"rail2"}})
    assert why(found, "gpu-0003") == {"rail2": "it has no port 0000:38:00.0"}
    assert (
        "gpu-0003 rail2: it has no port 0000:38:00.0. It is reported as no_data, and all other rails are planned"
        in found["warnings"]
    )
    assert "  rail2 has no port on gpu-0003" in found["table"]


@pytest.mark.parametrize("wish", [{}, {"rail_count": 4}, {"rails": LISTED}])
def test_without_consent_a_missing_nic_stops_before_anything_changes(wish: dict[str, Any]) -> None:
    hosts = fleet(4, rails=4)
    pull(hosts, "gpu-0003", 2)
    with pytest.raises(InputError, match="set rdma_fabric.absent_hosts: report$"):
        plan({"supernet": "192.168.0.0/16", **wish}, hosts)


def test_a_port_without_a_driver_is_missing_too() -> None:
    hosts = fleet(4, rails=4)
    hosts["gpu-0003"]["facts"]["ports"][3].update(driver=None, netdev=None, rdma=[], max_speed=None, speed=None)
    found = planned(hosts)
    same_but(found, planned(fleet(4, rails=4)), {"gpu-0003": {"rail2"}})
    assert why(found, "gpu-0003") == {"rail2": "its port 0000:38:00.0 has no driver"}


def test_a_rail_that_was_configured_before_its_nic_was_lost() -> None:
    hosts = fleet(4, rails=2)
    for number, host in enumerate(hosts.values(), 1):
        for rail, port in enumerate(host["facts"]["ports"][1:]):
            addresses = [f"192.168.{rail}.{number}/24"]
            port.update(netdev=f"rail{rail}", configured=configured(rail, *addresses), addresses=addresses)
    pull(hosts, "gpu-0003", 0)
    hosts["gpu-0003"]["facts"]["lost_rails"] = {"rail0": "0000:18:00.0"}
    found = planned(hosts)
    assert list(rails_of(found, "gpu-0003")) == ["rail1"]
    assert why(found, "gpu-0003") == {"rail0": "it has no port 0000:18:00.0"}


def prepared(count: int, rails: int = 2) -> Hosts:
    """Hosts in which each one has the addresses of its number."""
    hosts = fleet(count, rails)
    for number, host in enumerate(hosts.values(), 1):
        for rail, port in enumerate(host["facts"]["ports"][1:]):
            addresses = [f"192.168.{rail}.{number}/24"]
            port.update(netdev=f"rail{rail}", configured=configured(rail, *addresses), addresses=addresses)
    return hosts


def with_new_host_first(hosts: Hosts) -> Hosts:
    return {"gpu-0005": {"facts": host_facts(5, 2), "rdma_host": {}}, **hosts}


def addresses_of(found: Mapping[str, Any], name: str) -> list[str]:
    return [rail["address"] for rail in found["hosts"][name]["rails"]]


def lose(hosts: Hosts, name: str, how: str) -> None:
    facts = hosts[name]["facts"]
    if how == "no driver":
        for port in facts["ports"][1:]:
            port.update(driver=None, netdev=None, rdma=[], max_speed=None, speed=None, addresses=[])
        return
    facts["lost_rails"] = {port["netdev"]: port["pci"] for port in facts["ports"][1:]}
    facts["lost_addresses"] = {port["netdev"]: port["addresses"] for port in facts["ports"][1:]}
    pull(hosts, name, 0, 1)


@pytest.mark.parametrize("how", ["no driver", "no card"])
def test_no_host_gets_the_address_of_a_port_that_is_missing(how: str) -> None:
    hosts = prepared(4)
    lose(hosts, "gpu-0001", how)
    found = planned(with_new_host_first(hosts))
    assert addresses_of(found, "gpu-0005") == ["192.168.0.5/24", "192.168.1.5/24"]
    assert found["hosts"]["gpu-0001"]["number"] == 1
    assert not any("doubt" in rail for rail in found["hosts"]["gpu-0005"]["rails"])


def test_an_address_on_the_missing_rail_alone_stays_reserved() -> None:
    hosts = prepared(4)
    hosts["gpu-0002"]["facts"]["ports"][1].update(addresses=[], configured=configured(0, "192.168.0.5/24"))
    lose(hosts, "gpu-0002", "no driver")
    hosts["gpu-0002"]["facts"]["ports"][2] = prepared(4)["gpu-0002"]["facts"]["ports"][2]
    found = planned(with_new_host_first(hosts))
    assert addresses_of(found, "gpu-0005") == ["192.168.0.6/24", "192.168.1.6/24"]
    assert addresses_of(found, "gpu-0002") == ["192.168.1.2/24"]


def test_a_new_host_gets_no_address_while_those_of_another_are_unknown() -> None:
    hosts = prepared(4)
    pull(hosts, "gpu-0001", 0, 1)
    hosts = with_new_host_first(hosts)
    doubts = [rail["doubt"] for rail in planned(hosts)["hosts"]["gpu-0005"]["rails"]]
    assert doubts == ["gpu-0001", "gpu-0001"]
    hosts["gpu-0001"]["rdma_host"] = {"number": 1}
    found = planned(hosts)
    assert addresses_of(found, "gpu-0005") == ["192.168.0.5/24", "192.168.1.5/24"]
    assert not any("doubt" in rail for rail in found["hosts"]["gpu-0005"]["rails"])


def test_a_host_without_any_nic_keeps_its_number() -> None:
    hosts = fleet(4, rails=2)
    pull(hosts, "gpu-0002", 0, 1)
    same_but(planned(hosts), planned(fleet(4, rails=2)), {"gpu-0002": {"rail0", "rail1"}})


def test_most_hosts_without_a_rail_are_a_wrong_intent() -> None:
    hosts = fleet(4, rails=4)
    for name in ("gpu-0002", "gpu-0003"):
        pull(hosts, name, 2)
    with pytest.raises(InputError, match=r"hosts do not agree on the number of rails: 4 on 2 of 4 hosts, but 3 on"):
        planned(hosts)
    with pytest.raises(InputError) as caught:
        planned(hosts, rails=LISTED)
    text = "gpu-[0002-0003]: rail2: no port 0000:38:00.0 (also on 1 other hosts) (it has 0000:01:00.0"
    assert str(caught.value).startswith(f"not every rail has a port on every host. {text}")


def test_a_port_at_another_address_may_be_the_missing_one() -> None:
    """The bus numbers of all cards can change when one is gone: nothing is guessed."""
    hosts = fleet(4, rails=2)
    pull(hosts, "gpu-0003", 1)
    moved = {**rail_port(1), "pci": "0000:27:00.0"}
    hosts["gpu-0003"]["facts"]["ports"].append(moved)
    with pytest.raises(InputError, match=r"rail1: no port 0000:28:00.0, but 0000:27:00.0 could be this port"):
        planned(hosts, rails=LISTED[:2])
    hosts["gpu-0003"]["rdma_host"] = {"rails": {"rail1": "0000:27:00.0"}}
    assert rails_of(planned(hosts, rails=LISTED[:2]), "gpu-0003")["rail1"]["pci"] == "0000:27:00.0"


def test_an_idle_port_that_all_hosts_have_is_not_the_missing_one() -> None:
    hosts = fleet(4, rails=3)
    pull(hosts, "gpu-0003", 1)
    assert why(planned(hosts, rails=LISTED[:2]), "gpu-0003") == {"rail1": "it has no port 0000:28:00.0"}


def test_a_server_that_could_be_of_two_kinds() -> None:
    """Only its management port is left, and both kinds of servers have that."""
    hosts = fleet(7, rails=2)
    for name in ("gpu-0004", "gpu-0005", "gpu-0006"):
        hosts[name]["facts"] = host_facts(int(name[-1]), ports=[rail_port(4), rail_port(5)])
    pull(hosts, "gpu-0007", 0, 1)
    with pytest.raises(InputError, match=r"ports are missing on gpu-0007, which could be as gpu-\[0001-0003\] or as"):
        planned(hosts)
    hosts["gpu-0007"]["rdma_host"] = {"rails": {"rail0": "0000:18:00.0", "rail1": "0000:28:00.0"}}
    found = planned(hosts, rail_count=2)
    assert why(found, "gpu-0007") == {
        "rail0": "it has no port 0000:18:00.0",
        "rail1": "it has no port 0000:28:00.0",
    }


CLASSES = [{"name": "a", "hosts": ["gpu-0001", "gpu-0002", "gpu-0003", "gpu-0004", "gpu-0005"]}]


@examples(max_examples=40)
@given(st.data())
def test_any_missing_ports_leave_all_others_as_they_are(data: st.DataObject) -> None:
    classes = data.draw(st.sampled_from(["", "classes", "models"]))
    wish = data.draw(st.sampled_from([{}, {"rail_count": 3}]))
    hosts, whole = fleet(10, rails=3), fleet(10, rails=3)
    names = list(hosts)
    if classes == "models":
        for fabric in (hosts, whole):
            for number, name in enumerate(names[5:], 6):
                fabric[name]["facts"] = host_facts(number, ports=[rail_port(rail) for rail in (3, 4, 5)])
    more = {**wish, **({"classes": [{**CLASSES[0], "supernet": "172.16.0.0/16"}]} if classes == "classes" else {})}
    lost: dict[str, set[str]] = {}
    for part in (names[:5], names[5:]):
        # In each half fewer than half of the hosts lack something.
        for name in data.draw(st.sets(st.sampled_from(part), max_size=2)):
            gone = data.draw(st.sets(st.integers(0, 2), min_size=1, max_size=2))
            shift = 3 if classes == "models" and name in names[5:] else 0
            prefix = "a-" if classes == "classes" and name in names[:5] else ""
            pull(hosts, name, *(rail + shift for rail in gone))
            lost[name] = {f"{prefix}rail{rail}" for rail in gone}
    same_but(planned(hosts, **more), planned(whole, **more), lost)
