"""The page in headless Chromium: the script runs, the maps have colours, keys work, nothing overflows or is fetched.

Skipped where no Chromium is installed (Debian: apt-get install chromium). No test needs a network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import page_style
from tests.unit.support import report_factory as factory
from tests.unit.support.page import to_html

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import summary
from ansible_collections.gpufabric.rdma.plugins.plugin_utils.page import digest

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=3000",
]
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium, chromium-browser or google-chrome on this machine")

# Stands before everything else, so that it sees every error; the policy of the page forbids what would be fetched.
WATCH = """<script>
window.seen = [];
addEventListener("error", event => seen.push("error: " + event.message));
document.addEventListener("securitypolicyviolation", event => seen.push("fetch: " + event.blockedURI));
</script>"""
PROBE = """<script>
const said = { errors: seen, width: document.documentElement.scrollWidth, inner: innerWidth,
  fetched: performance.getEntriesByType("resource").length, ink: getComputedStyle(document.body).color };
%s
// A violation of the policy is told a moment later.
setTimeout(() => {
  const box = document.createElement("pre");
  box.id = "probe"; box.textContent = JSON.stringify(said); document.body.append(box);
}, 300);
</script>"""
# Pixels of a map by colour, and what it says after some keys.
MAP = """
const canvas = document.querySelector("details[open] canvas"), pixels = {};
const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
for (let at = 0; at < all.length; at += 4) {
  const colour = [all[at], all[at + 1], all[at + 2]].join(",");
  pixels[colour] = (pixels[colour] || 0) + 1;
}
const hex = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = name => [1, 3, 5].map(at => parseInt(hex(name).slice(at, at + 2), 16)).join(",");
said.failed = pixels[rgb("--fail-cell")] || 0;
said.kinds = Object.keys(pixels).length;
const out = canvas.nextElementSibling;
const press = key => {
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return out.textContent;
};
said.keys = ["Home", "f", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "End"].map(press);
said.drawn = [...document.querySelectorAll("canvas")].filter(one => one.height !== 150).length;
const find = document.getElementById("find");
find.value = "GPU-02"; find.dispatchEvent(new Event("input"));
said.found = [...document.querySelectorAll("details[data-host]")].filter(one => !one.hidden).length;
"""


# What stands on paper, told when the page is laid out for it, and again when its colours change for it.
PRINT = """<script>
function tell() {
  if (!matchMedia("print").matches) return;
  const canvas = document.querySelector("details[open] canvas"), pixels = {};
  const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let at = 0; at < all.length; at += 4) {
    if (all[at + 3] < 255) continue;
    const colour = [all[at], all[at + 1], all[at + 2]].join(",");
    pixels[colour] = (pixels[colour] || 0) + 1;
  }
  const body = getComputedStyle(document.body), bad = [...document.querySelectorAll("details.bad")];
  const controls = [...document.querySelectorAll(".find, output.told")];
  console.log("PAPER " + JSON.stringify({
    ink: body.color, paper: body.backgroundColor, folded: bad.filter(one => !one.open).length,
    unseen: bad.filter(one => ![...one.children].every(child => child.checkVisibility())).length,
    controls: controls.filter(one => one.checkVisibility()).length + " of " + controls.length,
    map: Object.keys(pixels).reduce((a, b) => pixels[a] > pixels[b] ? a : b),
  }));
}
for (const media of ["print", "(prefers-color-scheme: dark)"]) matchMedia(media).addEventListener("change", tell);
</script>"""


def with_script(page: str, place: str, script: str) -> str:
    """The page with a script of the test before ``place``, and a policy that lets this one run too."""
    page = page.replace("script-src ", "script-src %s " % digest(script[len("<script>") : -len("</script>")]), 1)
    return page.replace(place, script + place, 1)


def look(made: dict[str, Any], folder: Path, probe: str = "", width: int = 1280, *flags: str) -> dict[str, Any]:
    """Open a page and return what the probe saw in it."""
    text = with_script(to_html(summary.build(**made)), "<title>", WATCH)
    text = with_script(text, "</body>", PROBE % probe)
    page = folder / "page.html"
    page.write_text(text)
    argv = [BROWSER, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"]
    done = subprocess.run([*argv, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    _before, found, rest = done.stdout.rpartition('<pre id="probe">')
    assert found, done.stderr[-2000:]
    return json.loads(unescape(rest.partition("</pre>")[0]))


def printed(made: dict[str, Any], folder: Path, *flags: str) -> dict[str, Any]:
    """Print a page and return what it said of itself on paper."""
    page = folder / "page.html"
    page.write_text(with_script(to_html(summary.build(**made)), "</body>", PRINT))
    argv = [
        BROWSER,
        *FLAGS,
        *flags,
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
        f"--print-to-pdf={folder / 'page.pdf'}",
        page.as_uri(),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    said = [line.partition('", source: ')[0] for line in done.stderr.split("PAPER ")[1:]]
    assert said and (folder / "page.pdf").read_bytes().startswith(b"%PDF"), done.stderr[-2000:]
    return json.loads(said[-1])


FAULTS = {("gpu-007", "rail1"): "slow", ("gpu-020", "rail1"): "cable"}


def test_a_drawn_map_shows_failures_and_is_read_by_keys(tmp_path: Path) -> None:
    said = look(factory.fleet(64, 2, 8, FAULTS), tmp_path, MAP)
    assert (said["errors"], said["fetched"]) == ([], 0)
    assert said["failed"] > 16 * 20
    assert said["kinds"] > 5
    home, failed, right, down, up, left, end = said["keys"]
    assert home.startswith("gpu-000 to gpu-") and home.endswith("passed")
    assert ("gpu-007" in failed and "failed: 2" in failed) or "gpu-020 rail1: port is down" in failed
    assert len({failed, right, down}) == 3 and end.startswith("gpu-063 to gpu-")
    assert up and left
    assert said["drawn"] == 1, "a folded map costs nothing"
    assert said["found"] == 10


@pytest.mark.parametrize("hosts", [512, 1024])
def test_many_hosts_are_drawn_in_time(hosts: int, tmp_path: Path) -> None:
    said = look(factory.fleet(hosts, 2, 8, FAULTS), tmp_path, MAP)
    assert said["errors"] == []
    assert said["failed"] > 16 * 9, "each failed test is at least four pixels wide"


@pytest.mark.parametrize(("hosts", "rounds"), [(3, 0), (12, 0), (64, 8)])
@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_is_wider_than_the_window(hosts: int, rounds: int, width: int, tmp_path: Path) -> None:
    made = factory.fleet(hosts, 2, rounds, {("gpu-001", "rail1"): "slow"})
    # Chromium opens no window below 500 pixels, so the page itself is made as narrow as asked for.
    said = look(
        made,
        tmp_path,
        f"document.body.style.width = '{width}px';"
        "said.wide = [...document.querySelectorAll('section > *, article > *')]"
        ".filter(one => one.getBoundingClientRect().right > document.body.getBoundingClientRect().right + 1)"
        ".map(one => one.tagName + '.' + one.className);",
        width,
    )
    assert said["errors"] == []
    assert said["wide"] == []
    assert said["width"] <= max(said["inner"], width)


def test_every_selector_property_and_value_of_the_style_exists(tmp_path: Path) -> None:
    """Chromium ignores what it does not know, as every browser does."""
    selectors, declarations = page_style.questions()
    planted = ["a:hoover", ["colour", "red"], ["width", "10pixel"]]
    said = look(
        factory.fleet(2, 1),
        tmp_path,
        f"said.unknown = {json.dumps([*selectors, *declarations, *planted])}"
        ".filter(one => !(Array.isArray(one) ? CSS.supports(...one) : CSS.supports(`selector(${one})`)));",
    )
    assert said["unknown"] == planted


def test_dark_mode(tmp_path: Path) -> None:
    made = factory.fleet(3, 1, faults={("gpu-001", "rail0"): "slow"})
    light = look(made, tmp_path)
    dark = look(made, tmp_path, "", 1280, "--force-dark-mode")
    assert (light["ink"], dark["ink"]) == ("rgb(28, 36, 48)", "rgb(230, 234, 240)")


@pytest.mark.parametrize("flags", [(), ("--force-dark-mode",)], ids=["light", "dark"])
def test_on_paper_all_that_is_bad_is_unfolded_in_light_colours_without_controls(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    said = printed(factory.fleet(64, 2, 8, {**FAULTS, ("gpu-030", "rail0"): "slow"}), tmp_path, *flags)
    # One of the three causes, and the hosts.
    assert said.pop("folded") > 3
    assert said == {
        "ink": "rgb(28, 36, 48)",
        "paper": "rgb(255, 255, 255)",
        "unseen": 0,
        "controls": "0 of 3",
        "map": "243,245,248",
    }


def test_the_page_lets_nothing_be_fetched_and_the_probe_sees_it(tmp_path: Path) -> None:
    said = look(
        factory.fleet(2, 1),
        tmp_path,
        "const image = new Image(); image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image);"
        "setTimeout(() => { throw new Error('planted'); });",
    )
    assert sorted(said["errors"]) == ["error: Uncaught Error: planted", "fetch: http://127.0.0.1:9/x.png"]


def test_no_script_but_that_of_the_page_runs(tmp_path: Path) -> None:
    made = factory.fleet(2, 1)
    assert "unsafe-inline" not in to_html(summary.build(**made))
    said = look(
        made,
        tmp_path,
        "const more = document.createElement('script'); more.textContent = 'said.planted = 1';"
        "document.body.append(more);",
    )
    assert "planted" not in said
