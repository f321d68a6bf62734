"""netdev_names with rdma: rail, on a machine whose RDMA devices can be renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.name_kernel import rename_rdma
from tests.unit.support.sysfs_tree import Host

FIRST, SECOND = "0000:18:00.0", "0000:40:00.0"

RULE = "etc/udev/rules.d/60-rdma-persistent-naming.rules"
DISTRIBUTION = '# About it.\n\nACTION=="add", SUBSYSTEM=="infiniband", PROGRAM="rdma_rename %k NAME_FALLBACK"\n'
MATCH = 'ACTION=="add", SUBSYSTEM=="infiniband"'
TEXT = f"""\
# Written by gpufabric.rdma.netdev_names, which removes it with state: absent.
{MATCH}, KERNELS=="{FIRST}", PROGRAM="rdma_rename %k NAME_FIXED enp24s0np0", GOTO="gpufabric_rdma_end"
{MATCH}, KERNELS=="{SECOND}", PROGRAM="rdma_rename %k NAME_FIXED enp64s0np0", GOTO="gpufabric_rdma_end"
{MATCH}, PROGRAM="rdma_rename %k NAME_FALLBACK"
LABEL="gpufabric_rdma_end"
"""


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.reacts = lambda argv: rename_rdma(made, argv)
    (path,) = [shown for shown in made.prints if shown.endswith("resource show qp")]
    made.prints[path] = "[]"
    rules = tmp_path / "usr/lib/udev/rules.d/60-rdma-persistent-naming.rules"
    rules.parent.mkdir(parents=True)
    rules.write_text(DISTRIBUTION)
    return made


# The network devices keep their names here.
def rails(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    entry = {"driver": "mlx5_core", "address": None, "mtu": 9000}
    return [{"rail": name, "netdev": name, "pci": pci, **entry} for name, pci in pairs]


RAILS = rails(("enp24s0np0", FIRST), ("enp64s0np0", SECOND))


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("netdev_names", capsys, check, **{"rails": RAILS, "apply": "now", "rdma": "rail", **options, **params})


def devices(host: Host) -> dict[str | None, str]:
    return {device.pci: device.name for device in host.inventory().rdma_devices if device.pci in (FIRST, SECOND)}


def test_devices_get_the_names_of_their_rails(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    checked = call(host, capsys, check=True)
    assert not (host.root / RULE).exists()
    result = call(host, capsys)
    assert checked["diff"] == result["diff"]
    assert result["diff"]["before"]["rdma"] == {"rules": None, "names": {FIRST: "mlx5_0", SECOND: "mlx5_2"}}
    assert result["diff"]["after"]["rdma"]["names"] == {FIRST: "enp24s0np0", SECOND: "enp64s0np0"}
    assert devices(host) == {FIRST: "enp24s0np0", SECOND: "enp64s0np0"}
    assert (host.root / RULE).read_text() == TEXT
    assert (result["changed"], result["reasons"]) == (True, [])
    assert json.loads((host.root / "var/lib/gpufabric/rdma_names.json").read_text()) == {
        FIRST: {"before": "mlx5_0", "set": ["enp24s0np0"]},
        SECOND: {"before": "mlx5_2", "set": ["enp64s0np0"]},
    }
    assert call(host, capsys)["changed"] is False


@pytest.mark.parametrize("params", [{"state": "absent", "rails": []}, {"rdma": "keep"}])
def test_the_first_names_come_back(host: Host, capsys: pytest.CaptureFixture[str], params: dict[str, Any]) -> None:
    call(host, capsys)
    assert call(host, capsys, **params)["changed"] is True
    assert devices(host) == {FIRST: "mlx5_0", SECOND: "mlx5_2"}
    assert not (host.root / RULE).exists() and not (host.root / "var/lib/gpufabric/rdma_names.json").exists()
    assert call(host, capsys, **params)["changed"] is False


def test_names_can_change_places(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    for old, new in (("enp24s0np0", "x"), ("enp64s0np0", "enp24s0np0"), ("x", "enp64s0np0")):
        rename_rdma(host, ["rdma", "dev", "set", old, "name", new])
    call(host, capsys)
    assert devices(host) == {FIRST: "enp24s0np0", SECOND: "enp64s0np0"}
    assert [argv for argv in host.ran if argv[:3] == ["rdma", "dev", "set"]][-4:] == [
        ["rdma", "dev", "set", "enp64s0np0", "name", "gpufabric0"],
        ["rdma", "dev", "set", "enp24s0np0", "name", "gpufabric1"],
        ["rdma", "dev", "set", "gpufabric0", "name", "enp24s0np0"],
        ["rdma", "dev", "set", "gpufabric1", "name", "enp64s0np0"],
    ]


@pytest.mark.parametrize(
    ("apply", "pairs", "why"),
    [
        ("boot", "[]", "apply is boot"),
        ("now", '[{"pid": 4711, "comm": "python3"}]', "RDMA is in use by python3[4711]"),
        ("now", "[{", "queue pairs that cannot be read (install the rdma tool of iproute2)"),
    ],
)
def test_what_must_wait_leaves_a_reason(
    host: Host, capsys: pytest.CaptureFixture[str], apply: str, pairs: str, why: str
) -> None:
    (path,) = [shown for shown in host.prints if shown.endswith("resource show qp")]
    host.prints[path] = pairs
    result = call(host, capsys, apply=apply, rails=RAILS[:1])
    reason = f"the RDMA device of {FIRST} gets its name enp24s0np0 (now mlx5_0) at the next boot: {why}"
    assert result["reasons"] == [reason]
    assert devices(host)[FIRST] == "mlx5_0" and (host.root / RULE).exists()
    assert host.inventory().reboot == (reason,)
    assert call(host, capsys, apply=apply, rails=RAILS[:1])["changed"] is False


def test_a_file_of_somebody_else_is_not_touched(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / RULE).parent.mkdir(parents=True, exist_ok=True)
    (host.root / RULE).write_text("# mine\n")
    assert call(host, capsys)["msg"] == (
        f"netdev_names: {host.root / RULE} is not managed by this collection and names RDMA devices. "
        f"Remove it, or set rdma: keep"
    )
    assert not (host.root / "etc/systemd/network/10-gpufabric-enp24s0np0.link").exists()
    assert call(host, capsys, rdma="keep")["changed"] is True
    assert (host.root / RULE).read_text() == "# mine\n"


def test_a_name_that_another_device_has_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    rename_rdma(host, ["rdma", "dev", "set", "mlx5_1", "name", "enp24s0np0"])
    assert call(host, capsys)["msg"] == (
        "netdev_names: the RDMA device of 0000:18:00.0 is to be named enp24s0np0, but another one has this name. "
        "Rename or remove it"
    )


def test_a_new_rule_of_the_distribution_is_taken_over(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    rules = host.root / "usr/lib/udev/rules.d/60-rdma-persistent-naming.rules"
    rules.write_text(DISTRIBUTION.replace("NAME_FALLBACK", "NAME_KERNEL"))
    assert call(host, capsys)["changed"] is True
    assert (host.root / RULE).read_text() == TEXT.replace("NAME_FALLBACK", "NAME_KERNEL")


def test_a_port_without_an_rdma_device_has_its_rule_only(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "sys/class/infiniband/mlx5_0").unlink()
    result = call(host, capsys, rails=RAILS[:1])
    assert result["diff"]["after"]["rdma"]["names"] == {}
    assert f'KERNELS=="{FIRST}"' in (host.root / RULE).read_text()
    assert call(host, capsys, rails=RAILS[:1])["changed"] is False
