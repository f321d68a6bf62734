"""Images of the driver container: which ones hosts pull. A table of facts; costs less than a second."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import presets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

TAG = "doca3.5.0-26.07-0.7.7.0-1"
DRIVER = f"nvcr.io/nvidia/mellanox/doca-driver:{TAG}"
UBUNTU, RHEL, DEBIAN = ("ubuntu", "24.04"), ("rhel", "9.4"), ("debian", "12")


def planned(*systems: tuple[str, str] | None, arch: str = "x86_64", **own: Any) -> dict[str, Any]:
    hosts = fleet(len(systems))
    for host, system in zip(hosts.values(), systems):
        host["facts"]["arch"], host["facts"]["kernel"]["release"] = arch, "6.8.0-124-generic"
        if system is None:
            del host["facts"]["os"]
        else:
            host["facts"]["os"] = {"id": system[0], "version": system[1], "name": "any"}
    driver = {"enabled": True, "version": TAG, **own.pop("driver", {})}
    fabric = {"supernet": "192.168.0.0/16", "operator": {"release": "26.7.0", "driver": driver, **own}}
    return plan(fabric, hosts)


def lists(made: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The images of drivers, and the notes on those that are not known."""
    lines = manifests(made, Chart())["images.txt"].splitlines()
    own = [line for line in lines if "doca-driver" in line]
    return [line for line in own if line[0] != "#"], [line for line in own if line[0] == "#"]


def test_each_system_of_the_hosts_has_an_image() -> None:
    made = planned(UBUNTU, RHEL, UBUNTU)
    assert lists(made) == ([f"{DRIVER}-rhel9.4-amd64", f"{DRIVER}-ubuntu24.04-amd64"], [])
    assert not [text for text in made["warnings"] if "driver container" in text]
    assert lists(planned(UBUNTU, arch="aarch64"))[0] == [f"{DRIVER}-ubuntu24.04-arm64"]


def test_a_driver_that_is_compiled_already_is_for_one_kernel() -> None:
    assert lists(planned(UBUNTU, driver={"precompiled": True}))[0] == [f"{DRIVER}-6.8.0-124-generic-ubuntu24.04-amd64"]


@pytest.mark.parametrize("system", [DEBIAN, None, ("rhel", ""), ("ubuntu", "24.04")])
def test_what_is_not_known_is_a_note(system: tuple[str, str] | None) -> None:
    names, notes = lists(planned(RHEL, system, arch="riscv64" if system == UBUNTU else "x86_64"))
    assert notes == [f"# {DRIVER}-SYSTEM-ARCHITECTURE for each other node, such as {DRIVER}-ubuntu24.04-amd64"]
    assert names == ([] if system == UBUNTU else [f"{DRIVER}-rhel9.4-amd64"])


def test_a_system_without_an_image_is_a_warning() -> None:
    (text,) = [text for text in planned(UBUNTU, DEBIAN)["warnings"] if "driver container" in text]
    assert text.startswith("gpu-0002: the vendor publishes no image of the driver container for debian 12, so nodes")
    # A mirror can have images that its owner made.
    made = planned(DEBIAN, image_repository="mirror.example.com/m")
    assert not [text for text in made["warnings"] if "driver container" in text]


def test_drivers_are_copied_to_a_mirror() -> None:
    made = planned(UBUNTU, image_repository="mirror.example.com/m")
    target = f"mirror.example.com/m/doca-driver:{TAG}-ubuntu24.04-amd64"
    assert f"{DRIVER}-ubuntu24.04-amd64 {target}\n" in manifests(made, Chart())["mirror.txt"]


def test_without_the_driver_container_there_is_nothing_to_know() -> None:
    made = planned(DEBIAN, driver={"enabled": False})
    assert "driver_systems" not in made["operator"] and lists(made) == ([], [])
    fabric = {"supernet": "192.168.0.0/16", "operator": {"release": "26.7.0", "driver": {"enabled": True}}}
    names, notes = lists(plan(fabric, presets.hosts("dell_xe9680_h200", 2)))
    assert (names, len(notes)) == ([], 1)
