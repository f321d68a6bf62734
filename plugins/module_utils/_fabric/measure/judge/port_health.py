# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the counters of ports show over all tests: in which priority packets were, pauses, congestion, errors.

The counters are those of the whole port. Each value is compared with the time or the bytes of the tests in which it was
read. What a port counted in the tests that it runs at the same time, as the centre of a star does, counts once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...._common.reader import some
from ...._common.units import leading_number, natural, roce_mtu
from ...intent.kinds import KINDS
from ..readings import tester_cpu
from ..readings.counters import OUT_OF_ORDER, knows_all, sent_again
from ..readings.perftest import Run, Sample
from ..schedule.schedule import Measurement
from ..schedule.timing import count

End = tuple[str, str]
# The names of mlx5, mlx4 and bnxt_en.
_BYTES = re.compile(r"([rt]x)_(?:prio_?([0-7])_bytes|bytes_pri([0-7]))")
_PAUSED = re.compile(r"([rt]x)_prio([0-7])_pause_duration")
_CORRECTED = re.compile(r"rx_corrected_bits(_phy)?")
_BROKEN = re.compile(
    r"rx_(symbol_err|crc_errors|pcs_symbol_err)(_phy)?|symbol_error|local_link_integrity_errors|port_rcv_errors|"
    r"link_error_recovery|netdev_rx_(crc|frame)_errors"
)
_CNP = re.compile(r"np_cnp_sent|cc_tx_cnp_pkts|tx_cnp_pkts")
_DISORDER = re.compile(OUT_OF_ORDER)
# Part of the bytes of a test that must be in the priority of its class to prove it, and at most in it to refute it.
# Tests start and end slowly, so not all of the average times the duration is carried.
PROVEN, REFUTED = 0.8, 0.1
# Part of the time of all tests that a priority may be paused. Chosen here: a healthy pair of ports is hardly paused.
PAUSED = 0.05
# Part of the periods of a CPU limit in which it may stop a tester. Chosen here.
THROTTLED = 0.01
# Congestion notifications per second that a port may send while it has one partner. Chosen here.
CNPS = 1000
# Of packets that came out of order: the limit of validators of GPU clusters.
DISORDER = 1e-6
# Bits that FEC corrects, of those received. IEEE 802.3 allows 2.4e-4 with RS(544,514) and 5e-5 with RS(528,514).
BIT_ERRORS = 1e-5
# Bytes of a packet where neither plan nor link says more: the most packets that a usual Ethernet port receives.
_PACKET = 1024
# Bytes of one test. No port carries more, and a damaged row can be of any size.
_MOST = 1e18


@dataclass
class Port:
    """What one port counted in all its tests.

    ``seconds``, ``bits``: of its tests, bits by the rate of the link. ``asked``: bytes that it should have carried in
    tests whose counters were read, by direction; ``wanted``: the same of all tests; ``carried``: what was counted, by
    direction and priority; ``unread``: why others were not, with numbers. Of all tests with a rate: ``packets``
    received, ``disorder`` of those that came out of order, ``lost``, whether a sender sent packets again, ``unsure``,
    whether one can have done so. ``stopped``: in how many rounds the tester was stopped for so long that
    low readings do not count.
    """

    seconds: float = 0.0
    bits: float = 0.0
    amounts: Counter[str] = field(default_factory=Counter)
    counters: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    carried: dict[str, Counter[int]] = field(default_factory=lambda: {"tx": Counter(), "rx": Counter()})
    unread: Counter[str] = field(default_factory=Counter)
    packets: float = 0.0
    disorder: int = 0
    lost: bool = False
    unsure: bool = False
    stopped: int = 0


class Played(NamedTuple):
    """A test of a round, what its client and its server told, and its reading; None: none, or an impossible one."""

    test: Measurement
    runs: Sequence[Run | None]
    sample: Sample | None


class _Part(NamedTuple):
    """What one test of a round is for one of its ports: bytes sent and received, and by packets of which size."""

    run: Run
    peer: Run | None
    tx: int
    rx: int
    mtu: int


def absorb(ports: dict[End, Port], played: Sequence[Played], *, tests: Mapping[str, Any]) -> None:
    """Add what ports counted in a round, whose tests run at the same time; ``tests``: those of the plan, complete."""
    parts: dict[End, list[_Part]] = {}
    for one in played:
        if one.test.client != one.test.server:
            for end, part in _parts(one, tests):
                parts.setdefault(end, []).append(part)
    for end, own in parts.items():
        _add(ports.setdefault(end, Port()), own, float(tests["duration"]))


def _parts(played: Played, tests: Mapping[str, Any]) -> Iterator[tuple[End, _Part]]:
    test, runs, sample = played
    ends: tuple[End, End] = ((test.client, test.rail), (test.server, test.server_rail))
    both = tests["directions"] == "together"
    sent = {a for a, _b in KINDS[test.kind].ways(*ends)} | (set(ends) if both else set())
    # Of both directions, perftest prints the sum.
    bandwidth = sample is not None and sample.unit == "Gb/s"
    payload = sample.average * 1e9 / 8 * tests["duration"] / (1 + both) if sample and bandwidth else 0.0
    size = int(payload) if 0 < payload <= _MOST else 0
    mtu = tests["mtu"] or min((_mtu(run) for run in runs if run), default=_PACKET)
    for at, (end, run) in enumerate(zip(ends, runs)):
        if run is not None and run.ran:
            peer = ends[1 - at]
            yield end, _Part(run, runs[1 - at], size if end in sent else 0, size if peer in sent else 0, mtu)


def _mtu(run: Run) -> int:
    """Return the RDMA MTU of a link as it was read after the test."""
    mtu = natural(run.link.get("mtu"))
    return (roce_mtu(mtu) if mtu else None) or _PACKET


def _add(known: Port, parts: Sequence[_Part], duration: float) -> None:
    run = parts[0].run if len(parts) == 1 else _whole([part.run for part in parts])
    known.seconds += min(run.ran or 0.0, duration)
    # A link receives bits all the time.
    known.bits += (leading_number(run.link.get("rate")) or 0) * 1e9 * (run.ran or 0.0)
    # Updates with nothing take as long as others, and most tests have none.
    if run.amounts:
        known.amounts.update(run.amounts)
        known.stopped += any(tester_cpu.stopped(part.run.amounts) for part in parts)
    if run.counters:
        known.counters.update(run.counters)
    measured = [part for part in parts if part.tx or part.rx]
    if not measured:
        return
    _carried(known, run, measured)
    known.packets += sum(part.rx / part.mtu for part in measured)
    known.disorder += sum(growth for name, growth in run.counters.items() if _DISORDER.fullmatch(name))
    for part in measured:
        known.lost |= part.peer is not None and sent_again(part.peer.counters)
        known.unsure |= part.peer is None or not knows_all(part.peer.counters)


def _whole(runs: Sequence[Run]) -> Run:
    """Return what a port counted in several tests at the same time: each of them read the counters of all."""
    first = next((run for run in runs if not run.unread), runs[0])
    amounts: Counter[str] = Counter()
    counters: Counter[str] = Counter()
    for run in runs:
        amounts |= Counter(run.amounts)
        counters |= Counter(run.counters)
    return first._replace(ran=max(run.ran or 0.0 for run in runs), amounts=amounts, counters=counters)


def _carried(known: Port, run: Run, measured: Sequence[_Part]) -> None:
    asked = {"tx": sum(part.tx for part in measured), "rx": sum(part.rx for part in measured)}
    known.wanted.update(asked)
    if run.unread:
        known.unread[run.unread] += 1
        return
    known.asked.update(asked)
    add_bytes(known, run.amounts)


def add_bytes(known: Port, amounts: Mapping[str, int]) -> None:
    """Add the bytes by priority among ``amounts``."""
    for name, growth in amounts.items():
        match = _BYTES.fullmatch(name)
        if match:
            known.carried[match[1]][int(match[2] or match[3])] += growth


def proof(known: Port, priority: int) -> str:
    """Return "" when the packets of a port were in a priority in each direction, otherwise why this is not proven."""
    asked = {way: most for way, most in known.asked.items() if most}
    if not asked:
        return known.unread.most_common(1)[0][0] if known.unread else "no test carried data"
    for way, most in asked.items():
        if sum(known.carried[way].values()) < PROVEN * most:
            return "the counters by priority do not include the packets of the tests"
        if known.carried[way][priority] < PROVEN * most:
            return f"only {known.carried[way][priority] / most:.0%} of the bytes were in priority {priority}"
    return ""


def proofs(tests: Mapping[str, Any], ports: Mapping[End, Port]) -> list[str]:
    """Return a sentence for each result: at how many ports the traffic class is proven, and why not at others."""
    found: dict[str, list[str]] = {}
    for (host, rail), known in sorted(ports.items()):
        priority = tests.get("traffic", {}).get(rail, {}).get("priority")
        if priority is not None and (known.asked or known.unread):
            found.setdefault(proof(known, priority), []).append(host)
    total = sum(map(len, found.values()))
    if not total:
        return []
    told = [f"traffic class proven by counters of its priority at {len(found.get('', []))} of {total} ports"]
    for why, hosts in found.items():
        names = some(sorted(set(hosts)))
        told += [f"traffic class not proven at {len(hosts)} of {total} ports ({names}): {why}"] if why else []
    return told


def findings(tests: Mapping[str, Any], ports: Mapping[End, Port], *, stars: bool) -> list[dict[str, Any]]:
    """Return items of the report's ``links``. ``stars``: ports had several partners, so they are congested."""
    found = []
    for (host, rail), known in sorted(ports.items()):
        entry = tests.get("traffic", {}).get(rail, {})
        every = (*_class(known, entry), *_throttled(known), *_pauses(known), *_errors(known), *_order(known))
        for kind, own, expected, text in (*every, *(() if stars else _congestion(known))):
            where = {"host": host, "rail": rail, "kind": kind, "found": own, "expected": expected}
            found.append({**where, "text": f"{host} {rail}: {text}"})
    return found


_Found = Iterator[tuple[str, str, str, str]]
_UNTRUSTED = {
    "tx": "the port does not trust DSCP. Set trust: dscp in the QoS settings of the host",
    "rx": "this port does not trust DSCP, or a switch changed the DSCP. Set trust: dscp on hosts and switch ports",
}
_REMAPPED = "the table from DSCP to priority is not the usual one. Compare it with that of the switches"


def _class(known: Port, entry: Mapping[str, Any]) -> _Found:
    """Yield in which other priority packets with the DSCP of the class were."""
    priority = entry.get("priority")
    if priority is None:
        return
    for way, verb in (("tx", "sent"), ("rx", "received")):
        asked, carried = known.asked[way], known.carried[way]
        if not asked or carried[priority] >= REFUTED * asked or sum(carried.values()) < PROVEN * asked:
            continue
        other = carried.most_common(1)[0][0]
        told = f"packets with DSCP {entry['dscp']} were {verb} in priority {other}, not in priority {priority}"
        why = _UNTRUSTED[way] if other == 0 else _REMAPPED
        yield "class", f"priority {other}", f"priority {priority}", f"{told}, so they are not in the class: {why}"


def _throttled(known: Port) -> _Found:
    """Yield that the CPU limit stopped the tester during the tests of a port."""
    share = tester_cpu.share(known.amounts)
    if share >= THROTTLED or known.stopped:
        text = f"the CPU limit of the tester stopped it in {share:.0%} of the time of its tests, so they can read low"
        found, expected = f"{share:.0%}", f"below {THROTTLED:.0%}"
        if known.stopped:
            most = f"{tester_cpu.THROTTLED:.0%} or more"
            text += f"; rounds in which it was {most}, whose low readings count as no_data: {known.stopped}"
            if share < THROTTLED:
                found, expected = f"{most} in {count(known.stopped, 'round')}", "0 rounds"
        yield "throttled", found, expected, f"{text}. Remove the limit, or set a higher one"


def _pauses(known: Port) -> _Found:
    paused: Counter[tuple[str, str]] = Counter()
    for name, growth in known.amounts.items():
        match = _PAUSED.fullmatch(name)
        if match:
            paused[match[1], match[2]] += growth
    for (way, priority), growth in sorted(paused.items()):
        share = min(growth / 1e6 / known.seconds, 1.0)
        if share > PAUSED:
            why = (
                "the switch paused this port. Look for a slow receiver or a congested switch port"
                if way == "rx"
                else "this port paused its switch. Check PCIe, memory and load of the host"
            )
            text = f"PFC paused priority {priority} in {share:.0%} of the time of its tests: {why}"
            yield "pause", f"{share:.0%}", f"at most {PAUSED:.0%}", text
    storms = sum(growth for name, growth in known.counters.items() if name.startswith("tx_pause_storm"))
    if storms:
        text = f"PFC storm: this port paused its switch for so long that the NIC intervened (tx_pause_storm +{storms})"
        yield "pause", str(storms), "0", f"{text}. Check PCIe, memory and load of the host"


def _errors(known: Port) -> _Found:
    broken = {name: growth for name, growth in known.counters.items() if _BROKEN.fullmatch(name)}
    if broken:
        told = ", ".join(f"{name} +{growth}" for name, growth in sorted(broken.items()))
        text = f"errors on the wire that were not corrected ({told}). Check cable and transceiver"
        yield "signal", told, "0", text
    corrected = sum(growth for name, growth in known.amounts.items() if _CORRECTED.fullmatch(name))
    ratio = corrected / known.bits if known.bits else 0.0
    if ratio > BIT_ERRORS:
        text = f"FEC corrected {ratio:.1e} of the received bits, at most {BIT_ERRORS:.0e} expected"
        yield "fec", f"{ratio:.1e}", f"{BIT_ERRORS:.0e}", f"{text}. Check cable and transceiver"


def _order(known: Port) -> _Found:
    if not known.packets or known.disorder <= DISORDER * known.packets:
        return
    ratio = known.disorder / known.packets
    what = f"{known.disorder} packets came out of order ({ratio:.1e} of those received)"
    limits = (f"{ratio:.1e}", f"{DISORDER:.0e}")
    if known.lost:
        text = f"{what}, and senders sent packets again: loss, or several paths that the NIC does not support"
        yield ("loss", *limits, f"{text}. Check drops and adaptive routing on the switches")
    elif known.unsure:
        text = f"{what}: loss, or adaptive routing. Testers of senders did not list all counters, so it is not known"
        yield ("order", *limits, f"{text} which. Check drops on the switches")
    else:
        yield (
            "order",
            *limits,
            f"{what}, and no sender counted any that was sent again: adaptive routing, not loss",
        )


def _congestion(known: Port) -> _Found:
    sent = sum(growth for name, growth in known.counters.items() if _CNP.fullmatch(name))
    rate = sent / known.seconds if known.seconds else 0.0
    if rate > CNPS:
        text = f"this port sent {rate:.0f} congestion notifications (CNP) per second, at most {CNPS} expected from one"
        why = "partner at a time. Check for other traffic and for uplinks with too few paths"
        yield "congestion", f"{rate:.0f} per s", f"{CNPS} per s", f"{text} {why}"
