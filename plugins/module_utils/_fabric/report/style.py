# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The style of the HTML report. Colours are told apart by lightness too, and words say what colours mean."""

from __future__ import annotations

CSS = """
:root { --paper: #fff; --ink: #1c2430; --quiet: #5b6675; --line: #d9dee5; --soft: #f4f6f9;
  --pass: #1a7f4b; --pass-soft: #d8f0e2; --fail: #b3261e; --fail-soft: #f9d7d4;
  --no_data: #8a5a00; --no_data-soft: #fbe8c2; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6eaf0; --quiet: #98a3b3; --line: #2c3542;
  --soft: #1a2029; --pass: #5fd39a; --pass-soft: #15412b; --fail: #ff8a80; --fail-soft: #5a1d1a;
  --no_data: #f2c14e; --no_data-soft: #4d3a10; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.quiet { color: var(--quiet); font-size: .9em; margin: .2rem 0; }
header { border-left: .5rem solid var(--no_data); padding: .8rem 1.2rem; background: var(--soft);
  border-radius: .4rem; }
header.pass { border-color: var(--pass); } header.fail { border-color: var(--fail); }
header p { margin: .2rem 0; }
.verdict { float: right; font-size: 1.6rem; font-weight: 700; text-transform: uppercase; color: var(--no_data); }
header.pass .verdict { color: var(--pass); } header.fail .verdict { color: var(--fail); }
.findings { padding: 0; list-style: none; margin: 0; }
.findings li { padding: .5rem .8rem; margin: .4rem 0; background: var(--fail-soft); border-radius: .3rem;
  overflow-wrap: anywhere; }
.findings .warning { background: var(--no_data-soft); }
.findings b { text-transform: uppercase; font-size: .75em; letter-spacing: .05em; margin-right: .5em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
section > .scroll > table, details > .scroll > table { width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--quiet); font-weight: 600; font-size: .85em; white-space: nowrap; }
td.number { text-align: right; }
.badge { padding: .05rem .5rem; border-radius: 1rem; font-size: .85em; font-weight: 600; white-space: nowrap; }
.badge.pass { background: var(--pass-soft); color: var(--pass); }
.badge.fail { background: var(--fail-soft); color: var(--fail); }
.badge.no_data { background: var(--no_data-soft); color: var(--no_data); }
.maps { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
.map { margin: 0; min-width: 0; } .map.dense { grid-column: 1 / -1; }
figcaption { font-weight: 600; margin-bottom: .3rem; }
.map th, .map td { border: 2px solid var(--paper); text-align: center; }
.map tbody th { text-align: right; font-weight: 500; white-space: nowrap; }
.map td { min-width: 3.2rem; } .map td.none { background: var(--soft); }
td.pass { background: var(--pass-soft); } td.fail { background: var(--fail-soft); font-weight: 700; }
td.no_data { background: var(--no_data-soft); font-style: italic; }
.map.dense th, .map.dense td { padding: 0; border-width: 1px; font-size: .6rem; min-width: .7rem; height: .8rem; }
.map.dense tbody th { padding-right: .3rem; }
.map.dense thead span { writing-mode: vertical-rl; } .map.dense td.fail { background: var(--fail); }
.map.dense td.no_data { background: var(--no_data); }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; padding: .2rem; } summary:focus-visible { outline: 2px solid var(--pass); }
footer { margin-top: 2.5rem; color: var(--quiet); font-size: .9em; }
@media (max-width: 40rem) { .verdict { float: none; } main { padding: .8rem .6rem 2rem; }
  th, td { padding: .3rem .4rem; } }
@media print { details > *:not(summary) { display: block; } body { font-size: 11px; } .scroll { overflow: visible; } }
"""
