// The script of the report page: draws the big heat maps from the embedded data, and finds a host in the list.
"use strict";
(() => {
const WORDS = ["passed", "failed", "no data"], KEYS = ["pass", "fail", "no_data"];
const source = document.getElementById("data");
const data = source && JSON.parse(source.textContent);
// The number that each sign of the packed results stands for; two signs count to 4096.
const code = {};
[...(data ? data.signs : "")].forEach((sign, at) => { code[sign] = at; });
const number = (text, at) => code[text[at]] * 64 + code[text[at + 1]];
const style = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// The tests of a map in the order of their rows: [row, column, value or null, verdict 0 to 2, reason].
function tests(map) {
  const all = [];
  let bad = 0;
  KEYS.forEach((key, verdict) => {
    const text = map[key];
    for (let at = 0; at < text.length; at += 6) {
      const level = number(text, at + 4);
      const value = level === data.no_value ? null : level / data.levels * map.scale;
      const why = verdict ? map.why[bad++] : -1;
      all.push([number(text, at), number(text, at + 2), value, verdict, why]);
    }
  });
  return all.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

function say(map, test) {
  if (!test) return "";
  const value = test[2] === null ? "" : `${test[2].toPrecision(3)} ${map.unit}, `;
  const why = test[4] < 0 ? "" : `: ${data.reasons[test[4]]}`;
  return `${data.hosts[test[0]]} to ${data.hosts[test[1]]}: ${value}${WORDS[test[3]]}${why}`;
}

// Names of the rows that are drawn: all where there is room, else those of which at least half did not pass.
function labels(all, count, step) {
  if (step >= 11) return data.hosts.map((name, at) => at);
  const sums = data.hosts.map(() => [0, 0]);
  for (const test of all) {
    for (const host of [test[0], test[1]]) { sums[host][0] += test[3] > 0; sums[host][1] += 1; }
  }
  const bad = sums.map((sum, at) => [sum[1] ? sum[0] / sum[1] : 0, at]).filter(sum => sum[0] >= 0.5);
  const kept = [];
  for (const [, at] of bad.sort((a, b) => b[0] - a[0])) {
    if (kept.every(other => Math.abs(other - at) * step >= 12)) kept.push(at);
  }
  return kept;
}

function draw(view) {
  const { canvas, all } = view, count = data.hosts.length, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (!width) return;
  const pen = canvas.getContext("2d");
  pen.font = "11px system-ui, sans-serif";
  const longest = Math.max(...data.hosts.map(name => name.length));
  const gutter = Math.min(width / 3, 150, pen.measureText("0".repeat(longest)).width + 20);
  const side = Math.min(width - gutter, 900);
  const step = side / count, shown = labels(all, count, step), top = step >= 11 ? gutter : 12;
  view.step = step; view.left = gutter; view.top = top;
  canvas.height = (side + top + 2) * ratio; canvas.width = width * ratio;
  canvas.style.height = `${side + top + 2}px`;
  pen.scale(ratio, ratio);
  pen.fillStyle = style("soft"); pen.fillRect(gutter, top, side, side);
  cells(pen, view); edges(pen, view); names(pen, view, shown);
  if (view.at >= 0) cursor(pen, view, side);
}

function cells(pen, { all, map, step, left, top }) {
  const colours = ["pass-cell", "fail-cell", "no_data-cell", "pass-low"].map(name => style(name));
  const size = Math.max(step - (step >= 5 ? 1 : 0), 1);
  for (const verdict of [0, 2, 1]) {
    for (const test of all) {
      if (test[3] !== verdict) continue;
      const x = left + test[1] * step, y = top + test[0] * step;
      if (verdict) {
        problem(pen, verdict, colours[verdict], x, y, size);
      } else {
        pen.fillStyle = colours[3]; pen.fillRect(x, y, size, size);
        pen.globalAlpha = Math.max(0, Math.min(1, (test[2] / map.scale - 0.5) * 2)) || 0;
        pen.fillStyle = colours[0]; pen.fillRect(x, y, size, size); pen.globalAlpha = 1;
      }
    }
  }
}

// What did not pass is at least 4 pixels wide, so that one test of a million is seen.
function problem(pen, verdict, colour, x, y, size) {
  const wide = Math.max(size, 4), left = x - (wide - size) / 2, top = y - (wide - size) / 2;
  pen.fillStyle = colour; pen.strokeStyle = colour;
  if (verdict === 1) {
    pen.fillRect(left, top, wide, wide);
    if (wide >= 9) cross(pen, x, y, wide);
  } else {
    const line = wide >= 9 ? 3 : 1.5;
    pen.lineWidth = line;
    pen.strokeRect(left + line / 2, top + line / 2, wide - line, wide - line);
  }
}

function cross(pen, x, y, wide) {
  const inside = wide * 0.3;
  pen.strokeStyle = style("on-fail"); pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x + inside, y + inside); pen.lineTo(x + wide - inside, y + wide - inside);
  pen.moveTo(x + wide - inside, y + inside); pen.lineTo(x + inside, y + wide - inside);
  pen.stroke();
}

// Along the left edge what a host sent, along the upper what it received: the share that did not pass.
function edges(pen, { all, step, left, top }) {
  for (const end of [0, 1]) {
    const sums = data.hosts.map(() => [0, 0, 0]);
    for (const test of all) sums[test[end]][test[3]] += 1;
    sums.forEach((sum, at) => {
      const bad = sum[1] + sum[2];
      if (!bad) return;
      const long = Math.max(2, 9 * bad / (sum[0] + bad)), wide = Math.max(step - 1, 2);
      pen.fillStyle = style(sum[1] ? "fail-cell" : "no_data-cell");
      if (end) pen.fillRect(left + at * step, top - 1 - long, wide, long);
      else pen.fillRect(left - 1 - long, top + at * step, long, wide);
    });
  }
}

function names(pen, { step, left, top }, shown) {
  pen.fillStyle = style("ink"); pen.font = `${step >= 11 ? "" : "bold "}11px system-ui, sans-serif`;
  for (const at of shown) {
    pen.textAlign = "right"; pen.textBaseline = "middle";
    pen.fillText(data.hosts[at], left - 13, Math.max(top + (at + 0.5) * step, 7), left - 14);
    if (step < 11) continue;
    pen.save(); pen.translate(left + (at + 0.5) * step, top - 13); pen.rotate(-Math.PI / 2);
    pen.textAlign = "left"; pen.fillText(data.hosts[at], 0, 0, top - 14); pen.restore();
  }
}

function cursor(pen, view, side) {
  const [row, column] = view.all[view.at], size = Math.max(view.step, 5);
  const x = view.left + (column + 0.5) * view.step, y = view.top + (row + 0.5) * view.step;
  pen.strokeStyle = style("ink"); pen.lineWidth = 1;
  pen.strokeRect(x - size / 2 - 1, y - size / 2 - 1, size + 2, size + 2);
  pen.globalAlpha = 0.35;
  pen.beginPath(); pen.moveTo(view.left, y); pen.lineTo(view.left + side, y);
  pen.moveTo(x, view.top); pen.lineTo(x, view.top + side); pen.stroke(); pen.globalAlpha = 1;
}

function choose(view, at) {
  if (at < 0 || at >= view.all.length) return;
  view.at = at; view.output.textContent = say(view.map, view.all[at]); draw(view);
}

// The test nearest to a point; one that did not pass is drawn bigger, so it is found from farther away.
function nearest(view, x, y) {
  let best = -1, least = 1e9;
  view.all.forEach((test, at) => {
    const across = Math.abs(view.left + (test[1] + 0.5) * view.step - x);
    const far = Math.max(across, Math.abs(view.top + (test[0] + 0.5) * view.step - y));
    const counts = test[3] ? far - 3 : far;
    if (far <= Math.max(view.step / 2, 6) && counts < least) { least = counts; best = at; }
  });
  return best;
}

function beside(view, down) {
  const [row, column] = view.all[view.at];
  const rows = view.all.map(test => test[0]).filter(other => down ? other > row : other < row);
  if (!rows.length) return view.at;
  const next = rows.at(down ? 0 : -1);
  let best = view.at, least = 1e9;
  view.all.forEach((test, at) => {
    const far = Math.abs(test[1] - column);
    if (test[0] === next && far < least) { least = far; best = at; }
  });
  return best;
}

function keys(view, event) {
  const last = view.all.length - 1;
  const bad = from => view.all.findIndex((test, at) => at > from && test[3]);
  const moves = {
    ArrowRight: () => Math.min(view.at + 1, last), ArrowLeft: () => Math.max(view.at - 1, 0),
    Home: () => 0, End: () => last,
    ArrowDown: () => view.at < 0 ? 0 : beside(view, true), ArrowUp: () => view.at < 0 ? 0 : beside(view, false),
    f: () => bad(view.at) >= 0 ? bad(view.at) : bad(-1),
  };
  const move = moves[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault(); choose(view, move());
}

const views = [];
for (const canvas of data ? document.querySelectorAll("canvas[data-map]") : []) {
  const map = data.maps[canvas.dataset.map], output = canvas.nextElementSibling;
  const view = { canvas, map, output, all: null, at: -1 };
  views.push(view);
  view.show = () => { if (canvas.closest("details").open) { view.all = view.all || tests(map); draw(view); } };
  canvas.closest("details").addEventListener("toggle", view.show);
  canvas.addEventListener("keydown", event => keys(view, event));
  canvas.addEventListener("click", event => choose(view, nearest(view, event.offsetX, event.offsetY)));
  canvas.addEventListener("mousemove", event => {
    const at = nearest(view, event.offsetX, event.offsetY);
    if (at >= 0) output.textContent = say(map, view.all[at]);
  });
  view.show();
}
const again = () => views.forEach(view => view.show());
window.addEventListener("resize", again);
window.addEventListener("beforeprint", again);
window.addEventListener("afterprint", again);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);

const find = document.getElementById("find");
if (find) {
  find.closest("p").hidden = false;
  const hosts = [...document.querySelectorAll("details[data-host]")];
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    for (const host of hosts) host.hidden = !host.dataset.host.toLowerCase().includes(wanted);
  });
}
})();
