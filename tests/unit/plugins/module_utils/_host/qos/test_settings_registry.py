"""The registry of settings: the documentation equals it, and one more entry is all that a new setting takes."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support import qos_host
from tests.unit.support.qos_host import FIRST, FIXTURES, QOS, UNIT, call
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import checks, programs, topic_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import settings as qos_settings
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos.setting import Limits, Option, Setting

ROOT = Path(__file__).resolve().parents[6]
SHOWN = re.compile(r"^((?:rx|tx)-usecs):\s*(\d+)$", re.MULTILINE)


def parse_coalescing(text: str) -> dict[str, int]:
    found = dict(SHOWN.findall(text))
    return {"rx_usecs": int(found["rx-usecs"]), "tx_usecs": int(found["tx-usecs"])}


# Nothing else is there for the setting: the rest of the product must take it from here.
TOY = Setting(
    name="coalescing",
    source=(
        programs.ethtool(
            "c",
            "interrupt coalescing to set",
            parse_coalescing,
            limits=Limits(lambda _text: {"rx_usecs": 512}, unit="microseconds"),
        ),
    ),
    options={
        "coalescing": Option(
            {"type": "dict", "options": {"rx_usecs": {"type": "int"}, "tx_usecs": {"type": "int"}}},
            checks.fields({"rx_usecs": checks.number(0, 1 << 16), "tx_usecs": checks.number(0, 1 << 16)}),
        )
    },
)


def described(options: dict[str, Any], nested: str) -> dict[str, Any]:
    """Documented options as the argument spec of the registry has them; a missing description is an option less."""
    return {
        key: {
            **{field: option[field] for field in ("type", "elements", "choices", "required") if field in option},
            **({"options": described(option[nested], nested)} if nested in option else {}),
        }
        for key, option in options.items()
        if option.get("description")
    }


def module_documentation() -> dict[str, Any]:
    tree = ast.parse((ROOT / "plugins/modules/rail_qos.py").read_text())
    (text,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION"
    ]
    return described(yaml.safe_load(text)["options"]["settings"]["suboptions"], "suboptions")


def role_spec() -> dict[str, Any]:
    specs = yaml.safe_load((ROOT / "roles/rail_links/meta/argument_specs.yml").read_text())
    return described(specs["argument_specs"]["main"]["options"]["rail_links_qos"]["options"], "options")


def test_module_documentation_and_role_spec_equal_the_registry() -> None:
    assert module_documentation() == qos_settings.argument_spec()
    assert role_spec() == qos_settings.argument_spec()
    assert topic_io.ARGUMENTS["settings"]["options"] == qos_settings.argument_spec()


def test_names_and_keys_are_unique_and_partners_exist() -> None:
    keys = [key for setting in qos_settings.SETTINGS for key in setting.options]
    assert len({*keys}) == len(keys) and len({*qos_settings.names()}) == len(qos_settings.SETTINGS)
    assert {*qos_settings.partners().values()} <= {*qos_settings.names()}
    assert {label for setting in qos_settings.SETTINGS for label in setting.labels} <= {*keys}


def add(monkeypatch: pytest.MonkeyPatch, toy: Setting) -> None:
    monkeypatch.setattr(qos_settings, "SETTINGS", (toy, *qos_settings.SETTINGS))
    monkeypatch.setitem(topic_io.ARGUMENTS["settings"], "options", qos_settings.argument_spec())


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with the toy setting, whose ethtool has interrupt coalescing."""
    add(monkeypatch, TOY)
    made = qos_host.make(tmp_path, monkeypatch)
    made.prints["ethtool -c enp24s0np0"] = (FIXTURES / "ethtool-c.txt").read_text()

    def react(argv: list[str]) -> str | None:
        if argv[:2] != ["ethtool", "-C"]:
            return qos_host.obey(made, argv)
        for key, value in zip(argv[3::2], argv[4::2]):
            shown = made.prints[f"ethtool -c {argv[2]}"]
            made.prints[f"ethtool -c {argv[2]}"] = re.sub(rf"(?m)^{key}:\s*\d+$", f"{key}:\t{value}", shown)
        return None

    made.reacts = react
    return made


def test_a_toy_setting_demands_its_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, TOY)
    assert module_documentation() != qos_settings.argument_spec() != role_spec()
    with pytest.raises(AssertionError):
        test_module_documentation_and_role_spec_equal_the_registry()


def test_a_key_without_a_description_is_not_documented() -> None:
    spec = {"a": {"type": "int", "description": "A."}, "b": {"type": "int"}}
    assert described(spec, "options") == {"a": {"type": "int"}}


def test_a_toy_setting_is_set_kept_across_boots_and_restored(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = qos_host.snapshot(host)
    settings = {**QOS, "coalescing": {"rx_usecs": 64}}
    checked = call(host, capsys, check=True, settings=settings)
    assert qos_host.snapshot(host) == before
    result = call(host, capsys, settings=settings)
    assert result["changed"] and result["diff"] == checked["diff"]
    assert result["diff"]["before"]["rails"][FIRST]["coalescing"] == {"rx_usecs": 8}
    assert result["diff"]["after"]["rails"][FIRST]["coalescing"] == {"rx_usecs": 64}
    # By its position it is the first of all.
    assert ["ethtool", "-C", "enp24s0np0", "rx-usecs", "64"] in host.ran
    assert [argv[1] for argv in host.ran if argv[0] == "ethtool" and argv[1] in ("-A", "-C")] == ["-C", "-A"]
    unit = (host.root / "etc/systemd/system" / UNIT).read_text()
    assert "ExecStart=ethtool -C rail0 rx-usecs 64\n" in unit
    assert call(host, capsys, settings=settings)["changed"] is False
    record = json.loads((host.root / "var/lib/gpufabric/rail_qos.json").read_text())[FIRST]
    assert record["before"]["coalescing"] == {"rx_usecs": 8, "tx_usecs": 16}
    # A key that is not set any more is restored alone.
    assert call(host, capsys)["diff"]["after"]["rails"][FIRST]["coalescing"]["rx_usecs"] == 8
    assert host.prints["ethtool -c enp24s0np0"] == (FIXTURES / "ethtool-c.txt").read_text()
    call(host, capsys, settings=settings)
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert host.prints["ethtool -c enp24s0np0"] == (FIXTURES / "ethtool-c.txt").read_text()
    assert not (host.root / "etc/systemd/system" / UNIT).exists()


def test_a_toy_setting_that_boots_keep_is_not_in_the_unit(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = dataclasses.replace(TOY, lost_at_boot=False)
    monkeypatch.setattr(qos_settings, "SETTINGS", (kept, *qos_settings.SETTINGS[1:]))
    assert call(host, capsys, settings={"coalescing": {"rx_usecs": 64}})["changed"] is True
    assert not (host.root / "etc/systemd/system" / UNIT).exists()
    call(host, capsys, settings={"coalescing": {"rx_usecs": 64}, "pause": False})
    unit = (host.root / "etc/systemd/system" / UNIT).read_text()
    assert "ethtool -A" in unit and "ethtool -C" not in unit
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert host.prints["ethtool -c enp24s0np0"] == (FIXTURES / "ethtool-c.txt").read_text()


@pytest.mark.parametrize(
    ("coalescing", "message"),
    [
        ({"rx_usecs": 70000}, "rail_qos: settings.coalescing.rx_usecs: 70000 is not a number from 0 to 65536"),
        ({}, "rail_qos: settings.coalescing: set at least one of rx_usecs, tx_usecs"),
        (
            {"rx_usecs": 600},
            "rail_qos: gpu-11 rail0 (mlx5_core) supports at most 512 rx_usecs microseconds, 600 requested in "
            "coalescing.rx_usecs",
        ),
        ({"rx_usec": 8}, "settings.coalescing.rx_usec. Supported parameters include: rx_usecs, tx_usecs."),
    ],
)
def test_wrong_values_of_a_toy_setting_are_refused(
    host: Host, capsys: pytest.CaptureFixture[str], coalescing: dict[str, Any], message: str
) -> None:
    before = qos_host.snapshot(host)
    assert message in call(host, capsys, settings={"coalescing": coalescing})["msg"]
    assert qos_host.snapshot(host) == before


def test_a_nic_without_the_toy_setting_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    react = host.reacts
    host.reacts = lambda argv: "netlink error: Operation not supported" if "-c" in argv else react(argv)
    assert call(host, capsys, settings={"coalescing": {"rx_usecs": 8}})["msg"] == (
        "rail_qos: gpu-11 rail0 (mlx5_core) has no interrupt coalescing to set (ethtool printed: netlink error: "
        "Operation not supported); use a NIC and a driver that support it, or omit coalescing for this host"
    )
