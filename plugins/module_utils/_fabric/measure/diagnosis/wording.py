# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cause in words: what to look at, how certain that is, and the evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...._common.reader import some
from . import not_hardware, remedies
from .causes import Cause, center
from .components import PATHS, REMEDIES, Component, place_of
from .pass_index import BASE, GPU, MTU, OPPOSITE, End, Failure, Fleet, Scope, label

# Hosts on a rail from which on "nothing passed" cannot be a few bad hosts any more.
_ENOUGH_HOSTS = 4
# Partners with which a suspect fails while they pass with others.
ENOUGH_PARTNERS = 2
# What perftest and testers print about frames that do not fit. Status 12 is left out: it has other reasons as well.
_MTU_TEXT = re.compile(r"mtu mismatch|invalid mtu|mtu too small|message too long|RDMA MTU \d+, \d+ planned", re.I)
_SHOWN = 4
# What is no matter of single hosts, and what is.
WHOLE = ("all", "rail", "routing")
_OF_HOST = ("host", "port", "send", "receive")


_OPTIONAL = ("peer_rail", "group", "peer_group")


@dataclass(frozen=True)
class Diagnosis:
    """What failures point at (report.json ``diagnoses[]``).

    ``kind``: host, port, rail, routing (between rails), direction, pair, mtu, gpu, address, unknown,
    configuration, overload or tester (no results). ``confidence``: "confirmed" or "suspected". ``rail`` None:
    all rails.
    ``direction``: "send" or "receive", of ``host``. ``failed`` of ``tests`` that needed it did not pass.
    ``reproduce``: the commands [server, client] that reproduce it, when the caller has filled them in.
    ``peer_rail``: the peer's rail, or the other rail, "" where it is ``rail``. ``group``, ``peer_group``: of kinds
    group (a leaf switch), uplinks (of a group), groups (paths between two), paths (between all groups).
    """

    where: str
    kind: str
    rail: str | None
    host: str | None
    peer: str | None
    direction: str | None
    confidence: str
    failed: int
    tests: int
    evidence: tuple[str, ...]
    text: str
    reproduce: tuple[str, ...] = ()
    peer_rail: str = ""
    group: str = ""
    peer_group: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as a plain dict with lists; the last fields are only there where they say something."""
        told = {**asdict(self), "evidence": list(self.evidence), "reproduce": list(self.reproduce)}
        return {key: value for key, value in told.items() if value or key not in _OPTIONAL}


CONFIRMED, SUSPECTED = "confirmed", "suspected"
CONFIRMED_FAULT = "FAULT (confirmed)"
_NO_FAULT = {"overload": "OVERLOAD", "tester": "NO DATA", "configuration": "CONFIGURATION"}


def level(diagnosis: Mapping[str, Any]) -> str:
    """Return how a diagnosis is headed: an overload, missing results and settings are no fault."""
    if diagnosis["kind"] in _NO_FAULT:
        return _NO_FAULT[diagnosis["kind"]]
    return CONFIRMED_FAULT if diagnosis["confidence"] == CONFIRMED else "FAULT (suspected)"


def is_confirmed(fleet: Fleet, cause: Cause) -> bool:
    """Return whether nothing else explains the failures: partners that pass with others, in every direction.

    Only failures with firm evidence count.
    """
    scope, failures = cause.scope, [failure for failure in cause.failures if failure.firm]
    if cause.named:
        return True
    if not failures:
        return False
    if scope.kind in WHOLE:
        hosts = set().union(*(fleet.hosts_of[rail] for f in failures for rail in f.rails))
        steady = not fleet.passes[cause.layer, scope]
        return steady and len(hosts) >= _ENOUGH_HOSTS and not center(failures)
    if cause.unsteady or (scope.kind == "pair" and _is_elsewhere(fleet, failures)):
        return False
    if cause.component:
        return len({failure.client for failure in failures} | {failure.server for failure in failures}) >= _ENOUGH_HOSTS
    if scope.kind in ("pair", "path"):
        # A single test may have failed by chance.
        return (len(failures) > 1 or failures[0].repeated) and _both_pass_elsewhere(fleet, failures)
    if fleet.passes[cause.layer, scope] or len(fleet.good_partners(failures, scope)) < ENOUGH_PARTNERS:
        return False
    if fleet.met_a_weak_group(failures, scope):
        return False
    return scope.kind != "port" or all(
        fleet.good_partners([f for f in failures if role in f.roles(f.own(scope)[0])], scope) for role in OPPOSITE
    )


def _is_elsewhere(fleet: Fleet, failures: Sequence[Failure]) -> bool:
    """Return whether a port of a pair read low now and then with others: it may be that port."""
    ends = {end for failure in failures for end in failure.ends}
    return any(len(ends.intersection(flip)) == 1 for flip in fleet.flips)


def _both_pass_elsewhere(fleet: Fleet, failures: Sequence[Failure]) -> bool:
    return all(fleet.clears(failure, end) for failure in failures for end in failure.ends)


def doubtful(fleet: Fleet, cause: Cause) -> End | None:
    """Return the partner who may as well be the bad one: the only one met, never seen to pass; or None.

    Its rail is "" when it is more than one, or all.
    """
    scope = cause.scope
    if cause.named or cause.component or scope.kind not in _OF_HOST:
        return None
    ends = {end for failure in cause.failures for end in failure.partners(scope)}
    if len({label(end, scope) for end in ends}) > 1 or fleet.good_partners(cause.failures, scope):
        return None
    return ends.pop() if len(ends) == 1 and scope.rail else (ends.pop()[0], "")


def tell(fleet: Fleet, where: str, cause: Cause) -> Diagnosis:
    """Return the diagnosis of a cause: its kind, its sentence and its evidence."""
    scope, layer = cause.scope, _layer(cause)
    no_fault = not_hardware.kind_of(cause)
    peer = None if no_fault == not_hardware.CONFIGURATION else doubtful(fleet, cause)
    kind = no_fault or ("unknown" if peer else _kind(layer, scope.kind, cause.component))
    direction = scope.kind if scope.kind in OPPOSITE else None
    first, other = (scope.host, scope.rail), peer or (scope.peer, scope.peer_rail)
    if scope.kind == "pair" and len({f.ways for f in cause.failures}) == 1 and len(cause.failures[0].ways) == 1:
        (first, other), direction = cause.failures[0].ways[0], "send"
    failed, groups = len(cause.failures), _groups_of(cause.component)
    rail = first[1] if scope.rail else None
    return Diagnosis(
        where=where,
        kind=kind,
        rail=rail,
        host=first[0],
        peer=other[0],
        group=groups[0],
        peer_group=groups[1],
        peer_rail=other[1] if rail and other[1] and other[1] != rail else "",
        direction=direction,
        confidence=CONFIRMED if not peer and kind != not_hardware.TESTER and is_confirmed(fleet, cause) else SUSPECTED,
        failed=failed,
        tests=failed + (0 if scope.kind == "path" else fleet.passes[layer, scope]),
        evidence=tuple(_evidence(fleet, cause)),
        text=_sentence(fleet, cause, layer, peer=peer, no_fault=no_fault)
        + _most(cause.failures)
        + _nothing(fleet, cause, no_fault),
    )


def _groups_of(part: Component | None) -> tuple[str, str]:
    """Return the groups that a diagnosis names."""
    return (part.one, part.other) if part and part.kind in PATHS else ("", "")


def _layer(cause: Cause) -> str:
    """Return the layer to be told. Where large messages came through, slowly, no MTU holds them back."""
    if cause.layer == MTU and any(failure.arrived for failure in cause.failures):
        return BASE
    told = sum(bool(_MTU_TEXT.search(failure.reason)) for failure in cause.failures)
    return MTU if cause.layer == BASE and 2 * told >= len(cause.failures) else cause.layer


def _kind(layer: str, kind: str, part: Component | None) -> str:
    if kind == "path":
        return part.kind if part and part.kind in PATHS else "unknown"
    if layer != BASE:
        return layer
    return {"all": "rail", "send": "direction", "receive": "direction"}.get(kind, kind)


def _sentence(fleet: Fleet, cause: Cause, layer: str, *, peer: End | None, no_fault: str) -> str:
    scope, failed = cause.scope, len(cause.failures)
    place = _place(scope, cause.failures)
    if no_fault:
        both = f"{place} or {' '.join(filter(None, peer))}" if peer else place
        return not_hardware.sentence(cause, no_fault, both, passed=fleet.passes[BASE, scope])
    if cause.component:
        return _of_component(cause, cause.component)
    if peer:
        return f"{place} or {' '.join(filter(None, peer))}: none of the {failed} tests between them passed"
    if scope.kind == "path":
        pairs = listed({f"{f.client} to {f.server}" for f in cause.failures})
        return (
            f"{place}: {failed} tests between hosts that pass with others did not pass ({pairs}): check a shared path"
        )
    if layer == MTU:
        return f"{place or 'all rails'}: small messages pass, large ones do not: check the MTU of each port on the path"
    if layer == GPU:
        what = "check the peer memory module or DMA-BUF, ACS and the PCIe path"
        return f"{place or 'all rails'}: tests from host memory pass, tests from GPU memory do not: {what}"
    return place + _base_sentence(fleet, cause)


def _of_component(cause: Cause, part: Component) -> str:
    place, failed = place_of(part), len(cause.failures)
    if cause.unsteady:
        return f"{place}: unsteady: {failed} tests did not pass, while others of it passed: {REMEDIES[part.kind]}"
    return f"{place}: none of {failed} tests passed: {REMEDIES[part.kind]}"


def _place(scope: Scope, failures: Sequence[Failure]) -> str:
    """Return where it is, in words; "" for all rails."""
    if scope.kind == "routing":
        return f"{scope.rail} and {scope.peer_rail}" if scope.rail else "between rails"
    if scope.kind == "pair" and scope.peer_rail:
        return listed({" to ".join(map(" ".join, f.ends)) for f in failures})
    if scope.kind == "pair":
        return f"{scope.rail or 'all rails'}: " + listed({f"{f.client} to {f.server}" for f in failures})
    rails = " to ".join(rail for rail in (scope.rail, scope.peer_rail) if rail)
    return " ".join(name for name in (scope.host, rails) if name)


def _remedy(cause: Cause, usual: str) -> str:
    return remedies.remedy(cause.scope.host or "", [failure.reason for failure in cause.failures], usual)


def _base_sentence(fleet: Fleet, cause: Cause) -> str:
    scope, failed = cause.scope, len(cause.failures)
    passed = fleet.passes[BASE, scope]
    few = f"{failed} of its {failed + passed} tests did not pass" if passed else ""
    rest = ", while other hosts passed" if scope.kind == "host" else ", while other ports passed"
    others = rest if fleet.passes[BASE, Scope("all")] > passed else ""
    if scope.kind == "all":
        return f"all rails: none of {failed} tests passed: check the components that all hosts share"
    if scope.kind == "rail":
        count = f"{failed} of {failed + passed} tests did not pass" if passed else f"none of {failed} tests passed"
        hosts = fleet.hosts_of[scope.rail or ""]
        port = f", and the ports of {' and '.join(sorted(hosts))}" if len(hosts) == 2 else ""
        return f": {count}: check the switch, VLAN and configuration of the rail{port}"
    if scope.kind == "routing":
        between = "between them " if scope.rail else ""
        inside = all(fleet.passes[BASE, Scope("rail", rail)] for f in cause.failures for rail in f.rails)
        known = ", while tests within each rail passed" if inside else ""
        return f": none of {failed} tests {between}passed{known}: check the routing between rails"
    if scope.kind == "host":
        return f": {few or 'no test passed on any rail'}{others}: {_remedy(cause, 'check the host itself')}"
    if scope.kind == "port":
        usual = "check the host, NIC port and cable"
        return f": {few or f'none of its {failed} tests passed'}{others}: {_remedy(cause, usual)}"
    if scope.kind == "pair":
        chance = "; a single failure may be chance" if failed == 1 and not cause.failures[0].repeated else ""
        count = f"{failed} of {failed + passed} tests did not pass"
        if scope.host == scope.peer:
            return (
                f": {count}, while both rails pass with others: check the path between these rails of the host{chance}"
            )
        return f": {count}, while both hosts pass with others: check the path between them{chance}"
    side = "sender" if scope.kind == "send" else "receiver"
    number = f"{failed} of {failed + passed} tests with it as {side} did not pass" if passed else ""
    return f": {number or f'no test with it as {side} passed'}, while the other direction passed"


def _evidence(fleet: Fleet, cause: Cause) -> list[str]:
    scope, failures = cause.scope, cause.failures
    told = []
    if scope.kind in _OF_HOST:
        partners = {label(end, scope) for failure in failures for end in failure.partners(scope)}
        good = fleet.good_partners(failures, scope)
        told.append(f"did not pass with {listed(partners)}; {len(good)} of these {len(partners)} pass with others")
        told += _passes_elsewhere(fleet, scope)
    elif scope.kind == "pair":
        known = _both_pass_elsewhere(fleet, failures)
        one, other = (" ".join(end) if scope.peer_rail else end[0] for end in sorted(failures[0].ends))
        told.append(f"{one} and {other} " + ("pass with others" if known else "were tested with few others"))
        told += _readings(failures[0]) if len(failures) == 1 else []
    else:
        hosts = {name for failure in failures for name in (failure.client, failure.server)}
        told.append(f"{len(hosts)} hosts are affected: {listed(hosts)}")
    if cause.layer != BASE:
        what = "with small messages" if cause.layer == MTU else "from host memory"
        told.append(f"tests passed {what}: {fleet.passes[BASE, scope]}")
    verdicts = Counter(failure.verdict for failure in failures)
    told.append(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return told


def _readings(failure: Failure) -> list[str]:
    """Return what a test gave that was measured again, before and then."""
    if not failure.repeated:
        return []
    told = [("repeated measurement" if one.get("repeated") else "first measurement", one) for one in failure.passes]
    return [f"{when}: {one['reason'] or one['verdict']}" for when, one in told]


def _passes_elsewhere(fleet: Fleet, scope: Scope) -> list[str]:
    """Return what works of the suspect: its other direction, its other rails."""
    told = []
    if scope.kind in OPPOSITE:
        back = OPPOSITE[scope.kind]
        count = fleet.passes[BASE, Scope(back, scope.rail, scope.host)]
        told.append(f"{count} tests passed with it as {'sender' if back == 'send' else 'receiver'}")
    if scope.kind != "host":
        rails = [r for r in fleet.hosts_of if r != scope.rail and fleet.passes[BASE, Scope("port", r, scope.host)]]
        told += [f"passes on {listed(rails)}"] if rails else []
    return told


def listed(names: Iterable[str]) -> str:
    """Return names in their order for a sentence, cut when they are many."""
    return some(sorted(names), _SHOWN)


def _nothing(fleet: Fleet, cause: Cause, no_fault: str) -> str:
    """Return what to check where tests only ran out of time and none passed."""
    if fleet.passes[BASE, cause.scope] or no_fault != not_hardware.TESTER:
        return ""
    return ". No traffic passed: check the switch, VLAN and cable, and whether perftest or its GPU memory starts slowly"


def _most(failures: Sequence[Failure]) -> str:
    """Return the most frequent reason in brackets."""
    reasons = Counter(failure.reason for failure in failures if failure.reason)
    return f" ({reasons.most_common(1)[0][0]})" if reasons else ""
