/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts of single tasks: the stream, with zoom and search, and the chunks of each dataset. */

const CLOSEST = 1e-6; // smallest part of the run in a zoomed chart
const views = new Map(); // view of a chart by its id: {from, to} in seconds and {search}; kept over redraws

function viewOf(id, end) {
  const { from = 0, to = end, search = "" } = views.get(id) || {};
  return { from, to, search, whole: from <= 0 && to >= end };
}

function showPart(id, end, from, to) {
  const view = views.get(id) || {}, width = Math.max(end * CLOSEST, Math.min(end, to - from));
  const start = Math.max(0, Math.min(end - width, from));
  if (width >= end) views.set(id, { search: view.search });
  else views.set(id, { ...view, from: start, to: start + width });
}

function zoom(id, end, factor, around) {
  const view = viewOf(id, end), at = around ?? (view.from + view.to) / 2;
  showPart(id, end, at - (at - view.from) * factor, at + (view.to - at) * factor);
}

/* Ctrl and the wheel zoom around the pointer, dragging moves; + - 0 and Shift with the arrow keys do the same. */
function zoomable(place, id, end, timeAt, redraw) {
  let held = null;
  place.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(id, end, Math.exp(Math.max(-1, Math.min(1, event.deltaY * 0.005))), timeAt(event.clientX));
    redraw();
  }, { passive: false });
  place.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && !viewOf(id, end).whole) held = timeAt(event.clientX);
  });
  place.addEventListener("pointermove", (event) => {
    if (held === null || !event.buttons) return;
    const view = viewOf(id, end), by = held - timeAt(event.clientX);
    showPart(id, end, view.from + by, view.to + by);
    redraw();
  });
  for (const name of ["pointerup", "pointerleave"]) place.addEventListener(name, () => { held = null; });
  place.addEventListener("keydown", (event) => {
    const view = viewOf(id, end), step = ((view.to - view.from) / 4) * (event.key === "ArrowLeft" ? -1 : 1);
    if (event.key === "+" || event.key === "=") zoom(id, end, 0.5);
    else if (event.key === "-") zoom(id, end, 2);
    else if (event.key === "0") showPart(id, end, 0, end);
    else if (event.shiftKey && /^Arrow(Left|Right)$/.test(event.key)) showPart(id, end, view.from + step, view.to + step);
    else return;
    event.preventDefault();
    redraw();
  });
}

function isSought(bar, search) {
  return bar.key.toLowerCase().includes(search.toLowerCase());
}

/* The visible piece of a row's path from time a to b; empty if there is none. */
function piece(x, a, b, least, y, height) {
  const [left, right] = x.range(), from = Math.max(left, x(a)), to = Math.min(right, Math.max(x(b), x(a) + least));
  return to > from ? `M${from.toFixed(1)},${y.toFixed(1)}h${(to - from).toFixed(1)}v${height.toFixed(1)}h${(from - to).toFixed(1)}z` : "";
}

/* Divides the height in the ratio of the values; the rest goes to the last. */
function divided(values, whole, height) {
  let top = height;
  return values.map((v, k) => {
    const part = whole > 0 ? (Math.max(0, v || 0) / whole) * height : k === values.length - 1 ? height : 0;
    if (part < 0.05) return null;
    top -= part;
    return { k, top, part };
  }).filter(Boolean);
}

/*
 * A row for each thread, a bar for each task. The height of a bar is divided in the ratio of its time: one path
 * for each class, however many tasks there are. A line below each bar shows the kind of task.
 * Returns {x: the scale of time, go(i): moves the cursor}.
 */
function streamChart(box, { id, label, lanes, bars, cells, cell, classes, kinds, view, describe }) {
  const width = chartWidth(box), narrow = width < 560;
  const left = narrow ? 4 : Math.min(210, width * 0.22), right = width - 8;
  const row = Math.max(10, Math.min(44, Math.floor(420 / Math.max(1, lanes.length))));
  const bottom = lanes.length * row + 6;
  const svg = canvas(box, id, width, bottom + 24, label);
  const x = d3.scaleLinear().domain([view.from, view.to || 1]).range([left, right]);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(timeAxis(x, right - left));
  const paths = classes.map(() => []), strips = kinds.map(() => []), lost = [], hits = [];
  const strip = row < 14 ? 1 : 2, height = row - 2 - strip, gap = 0.4 * ((view.to - view.from) / (right - left));
  (cells || []).forEach((values, lane) => {
    for (let i = 0; i * classes.length < values.length; i++) {
      const parts = values.slice(i * classes.length, (i + 1) * classes.length).map((v) => Math.max(0, v) / 1000);
      for (const p of divided(parts, Math.max(1, parts.reduce((a, b) => a + b, 0)), height))
        paths[p.k].push(piece(x, i * cell, (i + 1) * cell, 0.5, lane * row + 3 + p.top, p.part));
    }
  });
  bars.forEach((bar) => {
    const y = bar.lane * row + 3, end = bar.begin + Math.max(0, bar.wall - gap);
    if (!cells) {
      const sum = bar.classes.reduce((s, c) => s + Math.max(0, c || 0), 0);
      for (const p of divided(bar.classes, sum, height)) paths[p.k].push(piece(x, bar.begin, end, 0.8, y + p.top, p.part));
      strips[bar.kind].push(piece(x, bar.begin, end, 0.8, y + height, strip));
    }
    if (bar.state !== "ok" && bar.state !== "running") lost.push(piece(x, bar.begin, end, 0.8, y, height));
    if (view.search && isSought(bar, view.search)) hits.push(piece(x, bar.begin, end, 2, y, height));
  });
  classes.forEach((c, k) => svg.append("path").attr("class", view.search ? "class faint" : "class").attr("data-name", c.id).attr("fill", colour(c.colour)).attr("d", paths[k].join("")));
  kinds.forEach((kind, k) => svg.append("path").attr("class", "kind").attr("data-name", kind.name).attr("fill", colour(kind.colour)).attr("d", strips[k].join("")));
  svg.append("path").attr("class", "lost").attr("fill", "none").attr("stroke", colour("high")).attr("stroke-width", 1.3).attr("d", lost.join(""));
  svg.append("path").attr("class", "hits").attr("d", hits.join(""));
  let last = null;
  lanes.forEach((lane, i) => {
    if (!narrow && lane !== last && row * lanes.filter((l) => l === lane).length >= 9) {
      svg.append("text").attr("class", "rowname").attr("x", left - 8).attr("y", i * row + Math.max(11, row / 2 + 7)).attr("text-anchor", "end")
        .text(fit(lane, left - 10, 6.6)).append("title").text(lane);
    }
    last = lane;
  });
  const ring = svg.append("rect").attr("class", "ring").attr("visibility", "hidden").attr("height", row);
  const go = reader(box, svg, id, bars.length, (px, py) => {
    const lane = Math.floor((py - 3) / row), t = x.invert(px);
    let best = 0, distance = Infinity;
    bars.forEach((bar, i) => {
      const d = Math.abs(bar.lane - lane) * 1e6 + Math.max(bar.begin - t, t - bar.begin - bar.wall, 0);
      if (d < distance) [best, distance] = [i, d];
    });
    return best;
  }, (i) => ring.attr("visibility", "visible").attr("x", x(bars[i].begin)).attr("y", bars[i].lane * row + 2)
    .attr("width", Math.max(2, x(bars[i].begin + bars[i].wall) - x(bars[i].begin))), (i) => describe(bars[i]));
  return { x, go };
}

/* The stream with its tools: a field that searches tasks by key, and zoom buttons. */
function streamPanel(box, chart, end) {
  const id = chart.id, place = h("div", {}), found = h("span", { role: "status" });
  let drawn = null;
  const button = (name, title, act) => {
    const made = h("button", { type: "button", id: `${id}-${name}`, "aria-label": title, title }, { in: "+", out: "\u2212", all: "all" }[name]);
    made.addEventListener("click", () => { act(); redraw(); });
    return made;
  };
  const field = h("input", { type: "search", id: `${id}-search`, placeholder: "find tasks by key", "aria-label": "find tasks by key" });
  const hits = () => chart.bars.map((b, i) => i).filter((i) => isSought(chart.bars[i], field.value));
  function redraw() {
    const focused = place.contains(document.activeElement), view = viewOf(id, end);
    place.replaceChildren();
    drawn = streamChart(place, { ...chart, view });
    if (focused) place.querySelector("svg").focus({ preventScroll: true });
    found.textContent = view.search ? `${groups(hits().length)} of ${groups(chart.bars.length)} tasks` : view.whole ? "" : `${as.seconds(view.from)} to ${as.seconds(view.to)}`;
  }
  field.value = viewOf(id, end).search;
  field.addEventListener("input", () => {
    views.set(id, { ...views.get(id), search: field.value });
    redraw();
  });
  field.addEventListener("keydown", (event) => {
    const all = hits(), next = all.find((i) => i > (cursors.get(id) ?? -1)) ?? all[0];
    if (event.key !== "Enter" || next === undefined) return;
    const { begin, wall } = chart.bars[next], view = viewOf(id, end), half = (view.to - view.from) / 2;
    if (begin > view.to || begin + wall < view.from) showPart(id, end, begin - half, begin + half);
    redraw();
    drawn.go(next);
  });
  box.append(h("div", { class: "tools" }, field, button("out", "zoom out", () => zoom(id, end, 2)), button("in", "zoom in", () => zoom(id, end, 0.5)),
    button("all", "show the whole run", () => showPart(id, end, 0, end)), found, h("span", { class: "hint" }, "Ctrl + wheel zooms, drag moves")), place);
  zoomable(place, id, end, (px) => {
    const rect = place.querySelector("svg").getBoundingClientRect();
    return drawn.x.invert(px - rect.left);
  }, redraw);
  redraw();
}

/*
 * Chunks: a row for each dataset, with the begin and duration of each chunk; the line is the median of all.
 * points: [{begin, wall, row, text}], rows: [{name, colour, median}], wall and median in seconds.
 */
function chunkChart(box, { id, label, points, rows, end }) {
  const width = chartWidth(box), one = Math.max(56, Math.min(190, Math.floor(300 / rows.length)));
  const area = { left: 62, right: width - 8 }, bottom = rows.length * one + 4;
  const svg = canvas(box, id, width, bottom + 22, label);
  const x = d3.scaleLinear().domain([0, end || 1]).range([area.left, area.right]);
  const y = d3.scaleLinear().domain([0, Math.max(...points.map((p) => p.wall)) * 1.05 || 1]).range([one - 6, 16]);
  const at = (p) => [x(p.begin), p.row * one + y(p.wall)];
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(timeAxis(x, area.right - area.left));
  rows.forEach((row, i) => {
    const part = svg.append("g").attr("transform", `translate(0,${i * one})`);
    part.append("g").attr("class", "grid").attr("transform", `translate(${area.left},0)`).call(d3.axisLeft(y).ticks(3).tickSize(-(area.right - area.left)).tickFormat(""));
    part.append("g").attr("class", "axis").attr("transform", `translate(${area.left},0)`).call(d3.axisLeft(y).ticks(3).tickFormat(onAxis(as.seconds)).tickSizeOuter(0));
    part.append("text").attr("class", "rowname").attr("x", area.left + 5).attr("y", 11).text(fit(row.name, area.right - area.left - 10, 6.6)).append("title").text(row.name);
    if (known(row.median)) part.append("line").attr("class", "median").attr("x1", area.left).attr("x2", area.right).attr("y1", y(row.median)).attr("y2", y(row.median)).attr("stroke", colour(row.colour));
  });
  svg.selectAll(".point").data(points).enter().append("circle").attr("class", "point").attr("r", points.length > 400 ? 2 : 3)
    .attr("cx", (p) => at(p)[0]).attr("cy", (p) => at(p)[1]).attr("fill", (p) => colour(rows[p.row].colour)).attr("fill-opacity", points.length > 100 ? 0.6 : 0.85);
  const ring = svg.append("circle").attr("class", "ring").attr("r", 5.5).attr("visibility", "hidden");
  reader(box, svg, id, points.length, (px, py) => {
    const distance = (p) => (at(p)[0] - px) ** 2 + (at(p)[1] - py) ** 2;
    return points.reduce((best, p, i) => (distance(p) < distance(points[best]) ? i : best), 0);
  }, (i) => ring.attr("visibility", "visible").attr("cx", at(points[i])[0]).attr("cy", at(points[i])[1]), (i) => points[i].text);
}
