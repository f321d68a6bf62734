"""Nothing that was planted survives redaction, in no format, and what is no address stays."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import report_factory as factory
from tests.unit.support.page import files as files_of

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import formats, summary
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.redact import KINDS, Redactor, kinds


def redact(text: str, wanted: tuple[str, ...] = KINDS, hosts: tuple[str, ...] = ()) -> str:
    return Redactor(wanted, [text], hosts).text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("connect to 192.168.0.12: refused", "connect to address-1: refused"),
        ("192.168.0.12:18500", "address-1:18500"),
        ("address 10.0.0.1/24 and 10.0.0.1.", "address address-1/24 and address-1."),
        ("node ip-10-0-0-12 of 10.0.0.12", "node ip-address-1 of address-1"),
        ("gid fe80::e42:a1ff:fe03:65", "gid address-1"),
        ("gid:fe80:0000:0000:0000:0e42:a1ff:fe03:0065 = fe80::e42:a1ff:fe03:65", "gid:address-1 = address-1"),
        (
            "GID ::ffff:192.168.0.1, 0000:0000:0000:0000:0000:ffff:c0a8:0001, 192.168.0.1",
            "GID address-1, address-1, address-1",
        ),
        ("[2001:db8::7]:18500", "[address-1]:18500"),
        ("fe80::1%eth0 via fe80::1.", "address-1%eth0 via address-1"),
        ("mac 0C:42:a1:03:00:65, 0c-42-a1-03-00-65, 0c42.a103.0065", "mac mac-1, mac-1, mac-1"),
        ("enx0c42a1030065", "enxmac-1"),
        ("b:0c:42:a1:03:00:65", "b:mac-1"),
        ("80:00:00:28:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:65:3f:da", "mac-1"),
        ("guid 0c42:a103:0065:3fda 0x0c42a10300653fda", "guid guid-1 guid-1"),
        ("Serial number: MT2012X03456", "Serial number: serial-1"),
        ("S/N = 'ABC-123', MT2012X03456", "S/N = 'serial-1', serial-2"),
        ("GPU-1b2c3d4e-0000-1111-2222-333344445555", "GPU-serial-1"),
        ("machine 00000000000000000000000000000abc", "machine serial-1"),
    ],
)
def test_table(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0000:1a:00.0",
        "0000:1a:00.0 rail0",
        "2026-11-21 08:36:12",
        "12.5 Gb/s measured, 93.1 Gb/s expected",
        "28.43.1014",
        "cpus 0-15,64-79",
        "x8 16 GT/s",
        "192.168",
        "a: b: c",
        "std::string",
        "sha256:" + "ab" * 32,
        "serial port",
        "::",
    ],
)
def test_what_is_no_address_stays(text: str) -> None:
    assert redact(text) == text


def test_hosts_only_on_demand_as_whole_words_and_in_keys() -> None:
    value = {"hosts": {"gpu-1": {"node": "gpu-1.example.org"}, "gpu-10": {}}, "text": "GPU-1: gpu-10, my-gpu-1. gpu-1."}
    assert Redactor(("addresses",), [value], ["gpu-1", "gpu-10"]).redact(value) == value
    assert Redactor(("hosts",), [value], ["gpu-1", "gpu-10"]).redact(value) == {
        "hosts": {"host-1": {"node": "host-1.example.org"}, "host-2": {}},
        "text": "host-1: host-2, my-gpu-1. host-1.",
    }


def test_a_host_with_the_name_of_a_field_does_not_break_the_report() -> None:
    built = summary.build({}, [factory.result("results", "fail", reason="fail: slow")])
    report, _plan = formats.redacted(built, {}, KINDS)
    assert set(report) == set(built)
    assert report["results"][0]["verdict"] == "pass"


def test_serials_are_found_below_their_keys_and_replaced_everywhere() -> None:
    value = {
        "vpd": {"serial_number": "X/77 Q"},
        "machine_id": "short-id",
        "text": "X/77 Q failed on short-id",
        "n": 7,
        "asset_serial": 1234567,
    }
    assert Redactor(("serials",), [value], []).redact(value) == {
        "vpd": {"serial_number": "serial-1"},
        "machine_id": "serial-2",
        "text": "serial-1 failed on serial-2",
        "n": 7,
        "asset_serial": "serial-3",
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (True, ("addresses", "serials")),
        (False, ()),
        (None, ()),
        ("hosts", ("hosts",)),
        (["hosts", "serials"], ("hosts", "serials")),
        ([], ()),
    ],
)
def test_option(asked: Any, expected: tuple[str, ...]) -> None:
    assert kinds(asked) == expected


def test_option_that_is_not_known() -> None:
    with pytest.raises(InputError, match="^redact: names is not known; expected true, false or some of addresses, "):
        kinds(["names"])


def mac_texts(pairs: bytes) -> list[str]:
    plain = pairs.hex()
    return [":".join(plain[i : i + 2] for i in range(0, 12, 2)), "-".join(plain[i : i + 2] for i in range(0, 12, 2))]


MACHINE = "0123456789abcdef0123456789abcdef"
V4 = st.ip_addresses(v=4).map(str)
# An address of the form ::1.2.3.4 or ::1 is too short to tell from other text in every surrounding.
V6 = (
    st.ip_addresses(v=6)
    .filter(lambda ip: int(ip) > 1 << 64)
    .flatmap(lambda ip: st.sampled_from([str(ip), str(ip).upper(), ip.exploded]))
)
MAC = st.binary(min_size=6, max_size=6).flatmap(lambda pairs: st.sampled_from(mac_texts(pairs)))
SERIAL = st.from_regex(r"MT[0-9]{4}[A-Z][0-9]{5}", fullmatch=True)
HOST = st.from_regex(r"[a-z]{3}-[0-9]{4}q", fullmatch=True)
BEFORE = st.sampled_from(["", "to ", "gid=", "[", "(", "error:", "peer: ", "x,", "'", "/", "\n"])
AFTER = st.sampled_from(["", " ", ", ", ".", ": refused", "]", ")", "/24", "%eth0", "'", "\n", ";"])


@given(address=st.one_of(V4, V6, MAC), before=BEFORE, after=AFTER)
def test_no_address_survives_in_any_surrounding(address: str, before: str, after: str) -> None:
    found = redact(before + address + after)
    assert address.lower() not in found.lower()
    assert "address-1" in found or "mac-1" in found


@given(planted=st.lists(st.one_of(V4, V6, MAC), min_size=2, max_size=5, unique=True), serial=SERIAL, host=HOST)
def test_nothing_planted_survives_in_any_format(planted: list[str], serial: str, host: str) -> None:
    plan = factory.plan(2, 1)
    port = {"rail": "rail0", "pci": "0000:1a:00.0", "netdev": "rail0", "address": planted[0], "mac": planted[1]}
    plan["hosts"][host] = {"node": f"{host}.example.org", "machine_id": MACHINE, "rails": [port]}
    text = " ".join([*planted, serial, host])
    bad = {"verdict": "fail", "value": 3.0, "reason": text, "basis": text}
    diagnosis = {
        **factory.fleet(2, 1, faults={("gpu-000", "rail0"): "slow"})["parts"]["diagnoses"][0],
        "text": text,
        "evidence": [text],
        "reproduce": [text, text],
        "host": host,
    }
    report = summary.build(
        plan,
        [factory.result(host, "gpu-000", **bad)],
        [text],
        context={"name": text, text: 1},
        parts={"diagnoses": [diagnosis], "gates": [gate(text)]},
    )
    report, redacted_plan = formats.redacted(report, plan, KINDS)
    for name, content in files_of(report, redacted_plan, 10).items():
        for secret in (*planted, serial, host, MACHINE):
            assert secret.lower() not in content.lower(), name
        assert "0000:1a:00.0" in content or name not in ("report.json", "report.html", "plan.json")


def gate(text: str) -> dict[str, Any]:
    return {"name": text, "query": text, "severity": "failure", "verdict": "fail", "found": [text], "text": text}


@given(number=st.integers(1, (1 << 32) - 1))
def test_the_same_address_has_the_same_pseudonym_however_it_is_written(number: int) -> None:
    v4 = ipaddress.IPv4Address(number)
    mapped = ipaddress.IPv6Address(f"::ffff:{v4}")
    assert redact(f"{v4} {mapped.exploded} ::ffff:{v4}") == "address-1 address-1 address-1"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (("addresses",), {"name": "prod", "server": "https://api.example.org:6443", "version": "v1.35.4"}),
        (("hosts",), {"name": "", "server": "https://host-1:6443", "version": "v1.35.4"}),
    ],
)
def test_the_cluster_is_a_host_among_others(wanted: tuple[str, ...], expected: dict[str, str]) -> None:
    made = factory.fleet(2, 1)
    known = {"name": "prod", "server": "https://api.example.org:6443", "version": "v1.35.4"}
    made["parts"]["run"] = {"id": "20261123T013000Z-3f9a2c", "seconds": 1, "cluster": known}
    made["warnings"] = ["the API server https://api.example.org:6443 does not answer"]
    report, _plan = formats.redacted(summary.build(**made), made["plan"], wanted)
    assert report["run"]["cluster"] == expected
    assert report["warnings"] == [f"the API server {expected['server']} does not answer"]


def test_an_api_server_by_address_is_an_address() -> None:
    made = factory.fleet(2, 1)
    made["parts"]["run"] = {"id": "x", "cluster": {"name": "", "server": "https://10.0.0.1:6443", "version": ""}}
    built = summary.build(**made)
    for wanted, server in ((("hosts",), "https://10.0.0.1:6443"), (KINDS, "https://address-1:6443")):
        assert formats.redacted(built, made["plan"], wanted)[0]["run"]["cluster"]["server"] == server


def test_same_pseudonyms_in_all_files() -> None:
    made = factory.fleet(3, 1)
    made["results"][0].update(verdict="fail", reason="192.168.0.2 is gone")
    report, plan = formats.redacted(summary.build(**made), made["plan"], ("addresses",))
    assert report["hosts"]["gpu-001"]["rails"][0]["address"] == plan["hosts"]["gpu-001"]["rails"][0]["address"]
    assert report["results"][0]["reason"].split()[0] + "/24" == plan["hosts"]["gpu-001"]["rails"][0]["address"]
