// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/sweep_html.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "services/cli/render/sweep.h"

namespace sextant::cli {
namespace {

constexpr char kBefore[] = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sextant sweep</title><style>
body{font:14px system-ui,sans-serif;margin:1.5em;color:#222}
h1{font-size:1.3em}h2{font-size:1.1em;margin-top:1.6em}
table{border-collapse:collapse}th,td{padding:.2em .7em;text-align:right;white-space:nowrap}
th{cursor:pointer;background:#eef;position:sticky;top:0}td:first-child,th:first-child{text-align:left}
tbody tr{cursor:pointer}tbody tr:hover{background:#f4f4ff}tr.chosen{background:#dde4ff}
.scroll{max-height:26em;overflow:auto;border:1px solid #ccc}
svg{border:1px solid #ccc;background:#fff}svg text{font-size:11px;fill:#444}
.front{fill:#d33}.point{fill:#36a;fill-opacity:.55}.line{fill:none;stroke:#d33}
.bar{fill:#36a}.muted{color:#666}
</style></head><body>
<h1 id="title"></h1><p id="summary" class="muted"></p>
<h2>Points</h2><p class="muted">Click a heading to sort, a row for its breakdown.</p>
<div class="scroll"><table id="points"><thead></thead><tbody></tbody></table></div>
<h2>Pareto front</h2>
<p><label>across <select id="x"></select></label> <label>up <select id="y"></select></label></p>
<svg id="pareto" width="720" height="360"></svg>
<h2 id="speedup-title">Speed-up</h2><svg id="speedup" width="720" height="300"></svg>
<h2>Breakdown <span id="chosen" class="muted"></span></h2><svg id="breakdown" width="720"></svg>
<h2>Turned down</h2><ul id="rejected"></ul>
<script type="application/json" id="report">)page";

constexpr char kAfter[] = R"page(</script><script>
"use strict";
const report = JSON.parse(document.getElementById("report").textContent);
const metrics = ["total_seconds", "tokens_per_second", "tokens_per_second_per_gpu",
  "model_flops_utilization", "memory_bytes", "gpu_count", "time_to_first_token_seconds",
  "inter_token_latency_seconds", "energy_joules_per_token", "cost_dollars_per_million_tokens"];
const byId = id => document.getElementById(id);
const rows = [...new Map([].concat(report.top, report.pareto, report.best, report.sample,
  report.top.length ? [] : report.nearest).map(row => [row.id, row])).values()];
const front = new Set(report.pareto.map(row => row.id));
const known = metrics.filter(m => rows.some(row => row[m] !== null));
const show = x => x === null ? "-" : Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3)
  ? x.toExponential(3) : String(Number(x.toPrecision(5)));
const planOf = row => row.settings.map(s => s.path + "=" + s.value).concat(
  Object.entries(row.plan || {}).filter(([k, v]) => v !== null && !Array.isArray(v) && v !== 0)
    .map(([k, v]) => k.replace(/_parallel_size|_size/, "") + " " + v)).join(", ");
function element(parent, name, attributes, text) {
  const svg = parent.namespaceURI.endsWith("svg");
  const e = svg ? document.createElementNS(parent.namespaceURI, name) : document.createElement(name);
  for (const key in attributes || {}) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  return parent.appendChild(e);
}
byId("title").textContent = "Sweep of " + report.model;
byId("summary").textContent = `${report.candidate_count} of ${report.whole_candidate_count} points, ` +
  `${report.predicted_count} predicted, ${report.accepted_count} meet everything; ranked by ` +
  `${report.rank_by}; parameter set ${report.parameter_set}` +
  (report.complete ? "" : "; NOT COMPLETE");
const columns = ["plan"].concat(known, ["interval_low_seconds", "interval_high_seconds"]);
const valueOf = (row, column) => column === "plan" ? planOf(row) : row[column];
let sorted = {column: report.rank_by, up: !/tokens_per_second|utilization/.test(report.rank_by)};
let chosen = rows[0];
function drawTable() {
  const head = byId("points").tHead, body = byId("points").tBodies[0];
  head.replaceChildren(); body.replaceChildren();
  const line = element(head, "tr");
  for (const column of columns) {
    const mark = column === sorted.column ? (sorted.up ? " \u25b2" : " \u25bc") : "";
    element(line, "th", {"data-column": column}, column + mark).onclick = () => {
      sorted = {column, up: sorted.column === column ? !sorted.up : true};
      drawTable();
    };
  }
  const order = rows.slice().sort((a, b) => {
    const x = valueOf(a, sorted.column), y = valueOf(b, sorted.column);
    if (x === null || y === null) return (x === null) - (y === null);
    return (x < y ? -1 : x > y ? 1 : a.id - b.id) * (sorted.up ? 1 : -1);
  });
  for (const row of order) {
    const tr = element(body, "tr", {"data-id": row.id, class: row === chosen ? "chosen" : ""});
    for (const column of columns) {
      const value = valueOf(row, column);
      element(tr, "td", {}, column === "plan" ? value : show(value));
    }
    tr.onclick = () => choose(row);
  }
}
function choose(row) { chosen = row; drawTable(); drawBreakdown(); }
function axes(svg, xs, ys, xName, yName) {
  const w = svg.width.baseVal.value, h = svg.height.baseVal.value, m = 80;
  const scale = (values, a, b) => {
    const low = Math.min(...values), high = Math.max(...values);
    return v => high > low ? a + (v - low) / (high - low) * (b - a) : (a + b) / 2;
  };
  const x = scale(xs, m, w - 20), y = scale(ys, h - 40, 20);
  element(svg, "text", {x: w / 2, y: h - 6, "text-anchor": "middle"}, xName);
  element(svg, "text", {x: 4, y: 12}, yName);
  for (const [values, axis] of [[xs, "x"], [ys, "y"]]) {
    for (const v of [Math.min(...values), Math.max(...values)]) {
      element(svg, "text", axis === "x" ? {x: x(v), y: h - 22, "text-anchor": "middle"}
        : {x: m - 6, y: y(v) + 4, "text-anchor": "end"}, show(v));
    }
  }
  return [x, y];
}
function drawPareto() {
  const svg = byId("pareto"), xName = byId("x").value, yName = byId("y").value;
  svg.replaceChildren();
  const points = rows.filter(row => row[xName] !== null && row[yName] !== null);
  if (!points.length) return;
  const [x, y] = axes(svg, points.map(r => r[xName]), points.map(r => r[yName]), xName, yName);
  for (const row of points) {
    const dot = element(svg, "circle", {cx: x(row[xName]), cy: y(row[yName]),
      r: front.has(row.id) ? 5 : 3, class: front.has(row.id) ? "front" : "point"});
    element(dot, "title", {}, planOf(row));
    dot.onclick = () => choose(row);
  }
}
function drawSpeedup() {
  const best = new Map();
  for (const row of [].concat(report.best, report.top)) {
    const n = row.gpu_count, old = best.get(n);
    if (row.tokens_per_second !== null && (!old || row.tokens_per_second > old)) {
      best.set(n, row.tokens_per_second);
    }
  }
  const line = [...best].sort((a, b) => a[0] - b[0]);
  const svg = byId("speedup");
  if (line.length < 2) {
    byId("speedup-title").remove(); svg.remove();
    return;
  }
  const points = line.map(([n, rate]) => [n, rate / line[0][1]]);
  const ideal = points.map(([n]) => n / points[0][0]);
  const [x, y] = axes(svg, points.map(p => p[0]), points.map(p => p[1]).concat(ideal), "gpu_count",
    "speed-up over the fewest (grey: ideal)");
  const path = values => values.map(([a, b], i) => (i ? "L" : "M") + x(a) + " " + y(b)).join("");
  element(svg, "path", {d: path(points.map(([n], i) => [n, ideal[i]])), class: "line",
    style: "stroke:#aaa"});
  element(svg, "path", {d: path(points), class: "line"});
  for (const [n, s] of points) {
    element(element(svg, "circle", {cx: x(n), cy: y(s), r: 4, class: "front"}), "title", {},
      n + " GPUs: " + show(s));
  }
}
function drawBreakdown() {
  const svg = byId("breakdown");
  svg.replaceChildren();
  if (!chosen) return;
  byId("chosen").textContent = "of " + planOf(chosen);
  const parts = Object.entries(chosen.breakdown).filter(([, s]) => s > 0).sort((a, b) => b[1] - a[1]);
  svg.setAttribute("height", parts.length * 22 + 10);
  const most = parts.length ? parts[0][1] : 1;
  parts.forEach(([name, seconds], i) => {
    element(svg, "text", {x: 4, y: 20 + 22 * i}, name);
    element(svg, "rect", {x: 190, y: 8 + 22 * i, height: 16, width: 380 * seconds / most, class: "bar"});
    element(svg, "text", {x: 196 + 380 * seconds / most, y: 20 + 22 * i},
      show(seconds) + " s, " + (100 * seconds / chosen.total_seconds).toFixed(1) + " %");
  });
}
for (const [id, wanted] of [["x", report.pareto_metrics[0]], ["y", report.pareto_metrics[1]]]) {
  for (const m of known) element(byId(id), "option", m === wanted ? {selected: ""} : {}, m);
  byId(id).onchange = drawPareto;
}
for (const [reason, count] of Object.entries(report.rejected)) {
  element(byId("rejected"), "li", {}, reason + ": " + count);
}
for (const sentence of report.excluded) element(byId("rejected"), "li", {}, sentence);
drawTable(); drawPareto(); drawSpeedup(); drawBreakdown();
</script></body></html>
)page";

}  // namespace

std::string SweepHtml(const sweep::SweepReport& report) {
  // "<" begins nothing inside a JSON string, and could end the script around it.
  return absl::StrCat(kBefore, absl::StrReplaceAll(SweepJson(report), {{"<", "\\u003c"}}), kAfter);
}

}  // namespace sextant::cli
