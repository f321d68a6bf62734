# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The style of the HTML report. Colours are told apart by lightness too, and words say what colours mean."""

from __future__ import annotations

_LIGHT = """--paper: #fff; --ink: #1c2430; --quiet: #566170; --line: #d5dbe3; --soft: #f3f5f8;
  --pass: #00695c; --pass-soft: #d3ede8; --pass-cell: #a5d6cb; --pass-low: #e4f3f0;
  --fail: #a3160b; --fail-soft: #fbdad5; --fail-cell: #a3160b; --on-fail: #fff;
  --no_data: #7a4f00; --no_data-soft: #fdebc0; --no_data-cell: #e08a00;"""
_DARK = """--paper: #12161c; --ink: #e6eaf0; --quiet: #a0abba; --line: #303a48; --soft: #1a2029;
  --pass: #63d2bd; --pass-soft: #123c36; --pass-cell: #2b7267; --pass-low: #17332f;
  --fail: #ff9e91; --fail-soft: #5c1b14; --fail-cell: #ff8272; --on-fail: #12161c;
  --no_data: #f5c45e; --no_data-soft: #4a370f; --no_data-cell: #f5c45e;"""

CSS = """
:root { %(light)s }
@media screen and (prefers-color-scheme: dark) { :root { %(dark)s } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 80rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); font-size: .9em; margin: .2rem 0; }
:focus-visible { outline: 3px solid var(--pass); outline-offset: 1px; }
header { border-left: .6rem solid var(--no_data); padding: .8rem 1.2rem; background: var(--no_data-soft);
  border-radius: .4rem; }
header.pass { border-color: var(--pass); background: var(--pass-soft); }
header.fail { border-color: var(--fail); background: var(--fail-soft); }
header p { margin: .2rem 0; } header .quiet { color: inherit; opacity: .8; }
.verdict { float: right; font-size: 1.9rem; line-height: 1.2; font-weight: 700; text-transform: uppercase;
  color: var(--no_data); }
header.pass .verdict { color: var(--pass); } header.fail .verdict { color: var(--fail); }
.diagnosis { border: 1px solid var(--line); border-left: .6rem solid var(--fail); border-radius: .4rem;
  padding: .7rem 1rem; margin: .6rem 0; }
.diagnosis details { border: 0; padding: 0; }
.diagnosis p { margin: .2rem 0; } .diagnosis ul { margin: .3rem 0 .5rem; padding-left: 1.2rem; }
.tag { border: 1px solid currentColor; border-radius: 1rem; padding: 0 .5rem; font-size: .8em; font-weight: 500; }
.diagnosis .step { color: var(--quiet); font-size: .9em; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: .3rem; padding: .5rem .7rem;
  margin: .2rem 0 .5rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.4 ui-monospace, monospace; user-select: all; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
ul.told { padding: 0; list-style: none; margin: 0; }
.told li { padding: .4rem .8rem; margin: .3rem 0; background: var(--soft); border-left: .3rem solid var(--line);
  border-radius: .3rem; overflow-wrap: anywhere; }
.told li.fail { border-color: var(--fail); } .told li.no_data { border-color: var(--no_data-cell); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
section > .scroll > table, details > .scroll > table { width: 100%%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--quiet); font-weight: 600; font-size: .85em; white-space: nowrap; }
td.n, thead th.n { text-align: right; }
td:not(:last-child) { white-space: nowrap; } td:last-child { min-width: 9rem; } td.n:last-child { min-width: 0; }
.badge { padding: .05rem .5rem; border-radius: 1rem; font-size: .85em; font-weight: 600; white-space: nowrap; }
.badge.pass { background: var(--pass-soft); color: var(--pass); }
.badge.fail { background: var(--fail-cell); color: var(--on-fail); }
.badge.no_data { background: var(--no_data-soft); color: var(--no_data); box-shadow: inset 0 0 0 1px; }
.maps { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(min(100%%, 23rem), 1fr)); }
.map { margin: 0; min-width: 0; } .maps:has(th:nth-child(8)) { grid-template-columns: minmax(0, 1fr); }
figcaption { font-weight: 600; margin-bottom: .3rem; }
.map th, .map td { border: 2px solid var(--paper); text-align: center; }
.map tbody th { text-align: right; font-weight: 500; white-space: nowrap; }
.map td, .map td:last-child { min-width: 3.6rem; white-space: nowrap; }
.map td.none, .map thead td { background: var(--soft); }
.map thead td { background: none; min-width: 0; }
td.pass { background: var(--pass-soft); }
td.fail { background: var(--fail-cell); color: var(--on-fail); font-weight: 700; }
td.no_data { background: var(--no_data-soft); font-style: italic;
  outline: 2px dashed var(--no_data-cell); outline-offset: -4px; }
.strip td:last-child { min-width: 12rem; width: 60%%; }
svg { display: block; width: 100%%; height: 1.4rem; background: var(--soft); }
svg .pass { fill: var(--pass-cell); } svg .fail { fill: var(--fail-cell); } svg .no_data { fill: var(--no_data-cell); }
canvas { display: block; width: 100%%; touch-action: pan-y; }
output.told { display: block; min-height: 1.6em; font-weight: 600; overflow-wrap: anywhere; }
.legend { font-size: .85em; color: var(--quiet); margin: .2rem 0 .6rem; }
.legend span { white-space: nowrap; margin-right: .8em; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .3em; border: 1px solid var(--line); }
.key.pass { background: var(--pass-cell); } .key.fail { background: var(--fail-cell); border-color: var(--fail-cell); }
.key.no_data { border: 3px solid var(--no_data-cell); }
details { border-bottom: 1px solid var(--line); padding: .3rem 0; }
summary { cursor: pointer; padding: .2rem; }
.cause { margin: .3rem 0; font-weight: 600; }
input { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--quiet);
  border-radius: .3rem; padding: .2rem .5rem; }
footer { margin-top: 2.5rem; color: var(--quiet); font-size: .9em; }
@media (max-width: 40rem) { .verdict { float: none; } main { padding: .6rem .5rem 2rem; }
  header { padding: .6rem .8rem; }
  th, td { padding: .25rem .4rem; } .diagnosis { padding: .5rem .7rem; }
  .map td { min-width: 3rem; } }
@media print { body { font-size: 11px; } td:not(:last-child) { white-space: normal; }
  main { max-width: none; padding: 0; } .scroll { overflow: visible; }
  .find { display: none; }
  details.bad::details-content { content-visibility: visible; display: block; height: auto; }
  .diagnosis, tr, figure, canvas { break-inside: avoid; }
  h2, summary { break-after: avoid; } output.told { display: none; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
""" % {"light": _LIGHT, "dark": _DARK}
