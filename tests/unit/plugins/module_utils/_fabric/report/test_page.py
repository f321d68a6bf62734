"""The page as text: what it says without script or style, what it never does, and how big it gets."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.unit.support import report_factory as factory
from tests.unit.support.page import files as files_of
from tests.unit.support.page import to_html

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import EarlierReport
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import (
    compare,
    console,
    matrix,
    summary,
)

REASON = 'gpu-001 rail1: port is down </script><img src=x onerror=alert(1)> & "quoted"'


class Page(HTMLParser):
    """Collects what could reach a network, headings, and text outside of script and style.

    ``rows``: the rows of all tables below each heading, each a list of what its cells say.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.reaches: list[str] = []
        self.headings: list[str] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.rows: dict[str, list[list[str]]] = {}
        self.inside, self.in_table = "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.reaches += [
            f"{tag} {name}"
            for name, value in attrs
            if name in ("src", "href", "srcset", "action", "style") or name.startswith("on")
        ]
        self.reaches += [tag] if tag in ("link", "iframe", "img", "object", "embed", "form", "base") else []
        self.inside = tag
        self.in_table = self.in_table or tag == "table"
        if tag == "tr":
            self.below.append([])
        elif tag in ("td", "th"):
            self.below[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.in_table = self.in_table and tag != "table"

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            return
        self.words.append(data)
        if self.in_table:
            self.below[-1][-1] += data.strip("\n")
        if self.inside == "h2":
            self.headings.append(data)
            self.inside = ""

    @property
    def below(self) -> list[list[str]]:
        """The rows below the last heading."""
        return self.rows.setdefault(self.headings[-1] if self.headings else "", [])

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page_of(made: dict[str, Any]) -> Page:
    return Page(to_html(summary.build(**made)))


FAULTS = {("gpu-001", "rail1"): "slow"}


@pytest.mark.parametrize("hosts", [3, 40])
def test_page_is_one_file_that_reaches_nothing_and_escapes_what_it_shows(hosts: int) -> None:
    made = factory.fleet(hosts, 2, faults=FAULTS)
    for one in made["results"]:
        if one["verdict"] == "fail":
            one["reason"] = REASON
    made["parts"]["diagnoses"][0].update(text=REASON, evidence=[REASON], reproduce=[REASON, REASON])
    made["warnings"] = [REASON]
    text = to_html(summary.build(**made))
    page = Page(text)
    assert page.reaches == []
    assert "default-src 'none'" in text
    assert "url(" not in text and "@import" not in text and "://" not in text
    assert text.count("</script>") == page.tags.count("script")
    assert page.text.count(REASON) >= 5


@pytest.mark.parametrize(("hosts", "rounds"), [(3, 0), (64, 8), (512, 8)])
def test_verdict_comes_first_then_the_cause_with_its_commands(hosts: int, rounds: int) -> None:
    page = page_of(factory.fleet(hosts, 2, rounds, faults=FAULTS))
    order = [
        "\u00d7 failed",
        "tests passed on",
        "What is broken",
        "gpu-001 rail1: every test is slow",
        "ssh gpu-001 -- ",
        "ssh gpu-002 -- ",
        "Links and ports",
        "Rails",
        "Who reached whom",
        "What bound the limits",
        "Counters that grew",
        "Hosts",
        "How it was measured",
    ]
    places = [page.text.find(words) for words in order]
    assert -1 not in places and places == sorted(places)


@pytest.fixture(scope="module")
def full() -> Page:
    """The page of four hosts with every section."""
    drop = {
        "where": "host",
        "rail": "rail0",
        "client": "gpu-000",
        "server": "gpu-001",
        "test": "write_bw",
        "value": 80.0,
        "severity": "failure",
        "text": "80 of 98 Gb/s",
    }
    gate = {
        "name": "no slow pair",
        "query": "results[?value < `90`]",
        "severity": "failure",
        "verdict": "fail",
        "found": 3,
        "text": "3 pairs below 90 Gb/s",
    }
    made = factory.fleet(4, 2, faults=FAULTS)
    made["parts"].update(
        outliers=[{**drop, "median": 98.0, "deviations": 6.1}],
        gates=[gate],
        baseline=[{**drop, "before": 98.0, "change": -0.18}],
    )
    made["results"][0]["link"] = {"server": {"width": 8}}
    for one in made["results"]:
        one["basis"] = "95 % of a 200 Gb/s port"
    report = summary.build(**made)
    report["comparison"] = compare.compare(report, EarlierReport.read(summary.build(**factory.fleet(4, 2)), "p"))
    return Page(to_html(report))


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        (
            "Compared with the earlier report",
            ["worse", "bare hosts", "rail1", "gpu-000", "gpu-001", "write_bw", "pass 190.3", "fail 22.9", "-88 %"],
        ),
        (
            "Acceptance rules",
            ["\u00d7 failed", "no slow pair", "failure", "3 pairs below 90 Gb/s", "3", "results[?value < `90`]"],
        ),
        (
            "Links and ports",
            ["gpu-001", "rail0", "pcie", "x8 16 GT/s", "x16 16 GT/s", "gpu-001 rail0: PCIe x8 of x16 lanes came up"],
        ),
        (
            "Outliers of the fleet",
            [
                "\u00d7 failure",
                "bare hosts",
                "rail0",
                "gpu-000",
                "gpu-001",
                "write_bw",
                "80",
                "98",
                "6.1",
                "80 of 98 Gb/s",
            ],
        ),
        (
            "Against the baseline",
            [
                "\u00d7 failure",
                "bare hosts",
                "rail0",
                "gpu-000",
                "gpu-001",
                "write_bw",
                "80",
                "98",
                "-18 %",
                "80 of 98 Gb/s",
            ],
        ),
        ("Rails", ["\u00d7 failed", "bare hosts", "rail1", "12", "6", "6", "0", "22.1", "107.9"]),
        ("Who reached whom", ["gpu-000", "", "192.2", "194.9", "195.3"]),
        (
            "What bound the limits",
            ["bare hosts", "rail1", "write_bw", "", "link", "12", "186.3 Gb/s", "95 % of a 200 Gb/s port (12 tests)"],
        ),
        ("Counters that grew", ["bare hosts", "gpu-001", "rail1", "rx_discards_phy", "8840", "6"]),
        ("Counters that grew", ["bare hosts", "gpu-001", "rail0", "width 8"]),
        ("Hosts", ["rail1", "0000:11:00.0", "rail1", "192.168.1.1/24", "9000", "\u00d7 4 of 6", "22.3"]),
        (
            "How it was measured",
            [
                "bare hosts",
                "all pairs",
                "6",
                "14 s",
                "84 s",
                "2",
                "83 %",
                "gpu-003, 1.4 s",
                "every host met others on all rails at once",
            ],
        ),
    ],
)
def test_sections_say_what_they_are_for(full: Page, heading: str, row: list[str]) -> None:
    assert row in full.rows[heading]


def test_without_blames_the_findings_stand_in_their_place() -> None:
    bad = {("gpu-001", "rail1"): ("fail", "slow")}
    page = page_of({"plan": factory.plan(4, 2), "results": factory.results(4, 2, bad)})
    assert "gpu-001 rail1: none of its 6 tests passed" in page.text
    assert "Outliers of the fleet" not in page.headings and "Acceptance rules" not in page.headings


def test_hosts_show_their_switch_ports_where_they_are_known() -> None:
    made = factory.fleet(3, 1)
    assert "switch" not in page_of(made).words
    made["plan"]["switches"] = {"rail0": {"gpu-001": {"switch": "leaf3", "port": "Ethernet12"}}}
    assert {"switch", "leaf3 port Ethernet12"} <= set(page_of(made).words)


def test_a_page_that_passed_names_nothing_broken() -> None:
    page = page_of(factory.fleet(3, 1))
    assert not {"What is broken", "What did not pass", "Counters that grew", "Warnings"} & set(page.headings)


def test_nothing_measured_says_so() -> None:
    page = page_of({"plan": factory.plan(2, 1), "results": []})
    assert "Nothing was measured. No data is not a pass." in page.text


def test_a_gate_that_fails_the_whole_is_named_in_the_head() -> None:
    gate = {
        "name": "at least 150",
        "query": "results[?value < `150`]",
        "severity": "failure",
        "verdict": "fail",
        "found": [1],
        "text": "one pair below 150 Gb/s",
    }
    page = page_of({"plan": {}, "results": [factory.result("a", "b")], "parts": {"gates": [gate]}})
    assert "Failed in addition to single tests: acceptance rule at least 150." in page.text
    assert page.text.index("Failed in addition to") < page.text.index("Acceptance rules") < page.text.index("Rails")


def test_colour_is_never_alone() -> None:
    text = to_html(
        summary.build(
            {},
            [
                factory.result("a", "b", verdict="fail", value=3.0, reason="slow"),
                factory.result("b", "a", verdict="no_data", value=None, reason="gone"),
            ],
        )
    )
    cells = dict(re.findall(r'<td class="(fail|no_data)" title="[^"]+">([^<]+)', text))
    assert cells == {"fail": "\u00d7 3", "no_data": "? none"}


def test_tables_can_be_reached_by_keyboard() -> None:
    text = to_html(summary.build(**factory.fleet(64, 2, 8, FAULTS)))
    assert len(re.findall(r'<div class="scroll"(?! tabindex="0" role="region" aria-label="[^"]+")', text)) == 0
    assert len(re.findall(r"<canvas(?! data-map=\"\d+\" tabindex=\"0\" role=\"img\" aria-label=\"[^\"]+\")", text)) == 0
    assert text.count("<pre") == text.count('<pre tabindex="0"') == 2


def test_a_drawn_map_has_a_table_that_says_the_same() -> None:
    page = page_of(factory.fleet(64, 2, 8, FAULTS))
    assert re.search(r"gpu-001\s+0 of 8\s+0 of 8", page.text)
    assert "half or more did not pass on" in page.text


def embedded(text: str) -> dict[str, Any]:
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def unpacked(data: dict[str, Any], at: int) -> set[tuple[str, str, float | None, str, str]]:
    """The results of a map as the script reads them."""

    def number(text: str) -> int:
        return matrix.ALPHABET.index(text[0]) * 64 + matrix.ALPHABET.index(text[1])

    one, found, why = data["maps"][at], set(), 0
    for verdict in ("pass", "fail", "no_data"):
        for start in range(0, len(one[verdict]), 6):
            row, column, level = (number(one[verdict][start + i :]) for i in (0, 2, 4))
            value = None if level == matrix.NO_VALUE else round(level / data["levels"] * one["scale"], 1)
            reason = data["reasons"][one["why"][why]] if verdict != "pass" else ""
            why += verdict != "pass"
            found.add((data["hosts"][row], data["hosts"][column], value, verdict, reason))
    return found


def test_embedded_data_are_the_results() -> None:
    made = factory.fleet(70, 2, 8, {("gpu-001", "rail1"): "slow", ("gpu-069", "rail1"): "cable"})
    data = embedded(to_html(summary.build(**made)))
    for at, rail in enumerate(("rail0", "rail1")):
        own = [r for r in made["results"] if r["rail"] == rail]
        found = unpacked(data, at)
        assert {(c, s, v, why) for c, s, _value, v, why in found} == {
            (r["client"], r["server"], r["verdict"], r["reason"]) for r in own
        }
        known = {(r["client"], r["server"]): r["value"] for r in own}
        assert all(value is known[c, s] is None or abs(value - known[c, s]) < 0.1 for c, s, value, _v, _w in found)


def test_of_too_many_results_only_those_that_did_not_pass_are_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "PASSED", 100)
    data = embedded(to_html(summary.build(**factory.fleet(40, 1, 8, {("gpu-001", "rail0"): "slow"}))))
    assert data["whole"] is False
    assert (data["maps"][0]["pass"], len(data["maps"][0]["fail"])) == ("", 6 * 16)


def test_every_test_of_a_cell_has_a_map_of_its_own() -> None:
    results = [
        factory.result("a", "b"),
        factory.result("a", "b", test="write_lat", unit="us", value=2.0),
        factory.result("a", "b", peer_rail="rail1", verdict="fail", value=1.0),
        factory.result("a", "b", size=4096),
        factory.result("a", "b", size=65536),
    ]
    assert [(grid.name, grid.test, len(grid.results)) for grid in matrix.grids(results)] == [
        ("rail0", "write_bw", 1),
        ("rail0", "write_lat", 1),
        ("rail0 to rail1", "write_bw", 1),
        ("rail0", "write_bw 4096 B", 1),
        ("rail0", "write_bw 65536 B", 1),
    ]


@pytest.mark.parametrize("everything_fails", [False, True])
def test_files_of_a_thousand_hosts_stay_small(everything_fails: bool) -> None:
    hosts, rails = 1024, 8
    faults = {("gpu-100", "rail3"): "slow", ("gpu-333", "rail3"): "cable"}
    made = factory.fleet(hosts, rails, 8, faults)
    assert len(made["results"]) == 65536
    if everything_fails:
        for number, one in enumerate(made["results"]):
            one.update(verdict="fail", reason=f"{number / 1000} Gb/s measured, 186 Gb/s expected ({one['basis']})")
    files = files_of(summary.build(**made), made["plan"], 10)
    sizes = {name: len(text.encode()) for name, text in files.items()}
    assert sizes["report.html"] < 5_000_000
    assert sizes["metrics.prom"] < 5_000_000
    assert len(files["report.txt"].splitlines()) <= 30


RUN = {
    "id": "20261123T013000Z-3f9a2c",
    "started": "2026-11-23 01:30:00 UTC",
    "ended": "2026-11-23 02:41:12 UTC",
    "seconds": 4272,
    "collection": "0.1.0",
    "release": "26.7.1",
    "cluster": {"name": "lab", "server": "https://lab.test:6443", "version": "v1.35.4"},
}
SCOPE = {
    "where": ["host"],
    "hosts": ["gpu-000"],
    "rails": ["rail0"],
    "only": {},
    "limit": "",
    "image": "",
    "host_network": False,
    "subset": ["pods not measured"],
}


def test_the_head_agrees_with_what_was_found_and_shows_what_was_measured() -> None:
    made = factory.fleet(3, 1, faults={("gpu-001", "rail0"): "cable"})
    made["parts"] = {**made["parts"], "run": RUN, "scope": SCOPE}
    for diagnosis in made["parts"]["diagnoses"]:
        diagnosis["confidence"] = "confirmed"
    report = summary.build(**made)
    assert report["verdict"] == "no_data"
    head = to_html(report).partition("</header>")[0]
    assert "? no data, 1 fault confirmed (subset)" in head and "Not the whole fabric: pods not measured." in head
    assert "measured: bare hosts, 1 host, 1 rail" in head
    assert (
        "run 20261123T013000Z-3f9a2c \u00b7 2026-11-23 01:30:00 UTC, 1 h 11 min \u00b7 gpufabric.rdma 0.1.0"
        " \u00b7 operator 26.7.1 \u00b7 cluster lab (https://lab.test:6443, Kubernetes v1.35.4)"
    ) in head
    assert console.text(report).splitlines()[-5:-2] == [
        "measured: bare hosts, 1 host, 1 rail",
        "run 20261123T013000Z-3f9a2c; 2026-11-23 01:30:00 UTC, 1 h 11 min; gpufabric.rdma 0.1.0; operator 26.7.1;"
        " cluster lab (https://lab.test:6443, Kubernetes v1.35.4)",
        console.table(report).splitlines()[0],
    ]
    assert console.verdict_line(report) == "no_data, 1 fault confirmed (subset: pods not measured)"
    made["parts"]["diagnoses"][0]["confidence"] = "suspected"
    assert console.verdict_line(summary.build(**made)) == "no_data (subset: pods not measured)"


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"name": "lab", "server": "https://h:1", "version": "v1.3"}, "cluster lab (https://h:1, Kubernetes v1.3)"),
        ({"name": "lab", "server": "https://h:1", "version": ""}, "cluster lab (https://h:1)"),
        ({"name": "", "server": "https://h:1", "version": "v1.35.4"}, "cluster https://h:1 (Kubernetes v1.35.4)"),
        ({"name": "", "server": "https://h:1", "version": ""}, "cluster https://h:1"),
        (None, ""),
    ],
)
def test_the_cluster_is_named_as_far_as_it_is_known(cluster: dict[str, str] | None, told: str) -> None:
    made = factory.fleet(3, 1)
    run = {**RUN, "cluster": cluster} if cluster else {key: RUN[key] for key in RUN if key != "cluster"}
    report = summary.build(**{**made, "parts": {**made["parts"], "run": run}})
    head = to_html(report).partition("</header>")[0]
    assert head.count("cluster") == bool(told) and told in head
    assert summary.brief(report, "/r")["cluster"] == told.partition("cluster ")[2]
    assert console.text(report).count("cluster") == bool(told)


def test_a_long_cause_has_a_short_title_and_is_whole_below() -> None:
    made = factory.fleet(3, 1, faults={("gpu-001", "rail0"): "slow"})
    text = "gpu-001 rail0: none of its 4 tests passed, others pass; " + "at gpu-001: out_of_sequence grew by 17; " * 8
    made["parts"]["diagnoses"][0]["text"] = text
    page = to_html(summary.build(**made))
    title = page.partition('<article class="diagnosis"><h3>')[2].partition(" <span")[0]
    assert len(title) < 130 and text.startswith(title[:-2]) and "<p>%s</p>" % text in page
