/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts: SVG by D3's scales, axes and shapes. Colours come from the style by class or variable. */

const CHART_HEIGHT = 210;
const cursors = new Map(); // where the reader's cursor stands, by chart: it survives a redraw

function colour(name) {
  return `var(--${name})`;
}

function chartWidth(box) {
  return Math.max(240, Math.floor(box.clientWidth));
}

function canvas(box, id, width, height, label) {
  return d3.select(box).append("svg").attr("id", id).attr("viewBox", `0 0 ${width} ${height}`)
    .attr("width", width).attr("height", height).attr("role", "img").attr("aria-label", label);
}

/* A time axis, from the run's start, with whole numbers of its unit. */
function timeAxis(x, width) {
  const [from, to] = x.domain();
  const [unit, name] = to >= 7200 ? [3600, "h"] : to >= 300 ? [60, "min"] : to >= 0.01 ? [1, "s"] : [1e-3, "ms"];
  const values = d3.scaleLinear().domain([from / unit, to / unit]).ticks(Math.max(2, Math.floor(width / 90)));
  return d3.axisBottom(x).tickSizeOuter(0).tickValues(values.map((v) => v * unit)).tickFormat((t) => `${onAxis(short)(Number((t / unit).toPrecision(9)))} ${name}`);
}

function frame(svg, x, y, box, yText) {
  svg.append("g").attr("class", "grid").attr("transform", `translate(${box.left},0)`)
    .call(d3.axisLeft(y).ticks(4).tickSize(-(box.right - box.left)).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${box.bottom})`)
    .call(timeAxis(x, box.right - box.left));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${box.left},0)`)
    .call(d3.axisLeft(y).ticks(4).tickFormat(onAxis(yText)).tickSizeOuter(0));
}

function legend(items, line) {
  return h("ul", { class: "legend" }, items.map((item) => {
    const key = h("span", { class: line || item.line ? "key line" : "key" });
    key.style[line || item.line ? "borderColor" : "background"] = colour(item.colour);
    return h("li", {}, key, item.name, item.value === undefined ? null : h("b", {}, item.value));
  }));
}

/* A cursor that follows the pointer and the arrow keys; text(i) says what stands there. */
function reader(box, svg, id, count, at, move, text) {
  const out = h("p", { class: "readout", "aria-hidden": "true" });
  const node = svg.node();
  let now = -1;
  function show(i) {
    now = Math.max(0, Math.min(count - 1, i));
    cursors.set(id, now);
    move(now);
    out.textContent = text(now);
    node.setAttribute("aria-valuenow", now);
    node.setAttribute("aria-valuetext", out.textContent);
  }
  svg.attr("role", "slider").attr("tabindex", 0).attr("aria-valuemin", 0).attr("aria-valuemax", Math.max(0, count - 1))
    .attr("aria-valuenow", 0).attr("aria-valuetext", "the arrow keys move along");
  node.addEventListener("pointermove", (event) => {
    const rect = node.getBoundingClientRect();
    const scale = node.viewBox.baseVal.width / rect.width;
    show(at((event.clientX - rect.left) * scale, (event.clientY - rect.top) * scale));
  });
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (step) show(now + step);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(count - 1);
    else return;
    event.preventDefault();
  });
  box.append(out);
  if (cursors.has(id) && count) show(cursors.get(id));
}

/*
 * Series over time. bins: {start, width} in seconds; series: [{name, colour, values, dashed, line}], a value
 * for each bin, null where it is unknown. Stacked as areas, except those with `line`.
 */
function timeChart(box, chart) {
  const { id, label, bins, series, text } = chart;
  const n = Math.max(...series.map((s) => s.values.length), 0);
  const width = chartWidth(box), height = chart.height || CHART_HEIGHT;
  const area = { left: chart.left || 52, right: width - 8, top: 8, bottom: height - 24 };
  const svg = canvas(box, id, width, height, label);
  const end = Math.min(bins.end ?? Infinity, bins.start + n * bins.width), edge = (i) => Math.min(end, bins.start + i * bins.width);
  const x = d3.scaleLinear().domain([bins.start, end]).range([area.left, area.right]);
  const stacked = series.filter((s) => !s.line);
  const rows = Array.from({ length: n }, (_, i) => stacked.map((s) => s.values[i] ?? 0));
  const layers = d3.stack().keys(stacked.map((_, i) => i)).value((row, key) => row[key]).offset(d3.stackOffsetDiverging)(rows);
  const tops = layers.flatMap((layer) => layer.map((p) => p[1]));
  const lows = layers.flatMap((layer) => layer.map((p) => p[0]));
  const lines = series.filter((s) => s.line).flatMap((s) => s.values.filter(known));
  const y = d3.scaleLinear().domain([Math.min(0, ...lows), Math.max(chart.least || 0, ...tops, ...lines) || 1])
    .nice(4).range([area.bottom, area.top]);
  frame(svg, x, y, area, chart.axisText || text);
  const steps = Array.from({ length: n + 1 }, (_, i) => i);
  layers.forEach((layer, k) => svg.append("path").attr("class", "layer").attr("data-name", stacked[k].name)
    .attr("fill", colour(stacked[k].colour))
    .attr("d", d3.area().curve(d3.curveStepAfter).x((i) => x(edge(i)))
      .y0((i) => y(layer[Math.min(i, n - 1)][0])).y1((i) => y(layer[Math.min(i, n - 1)][1]))(n ? steps : [])));
  series.filter((s) => s.line).forEach((s) => svg.append("path").attr("class", "curve").attr("data-name", s.name)
    .attr("fill", "none").attr("stroke", colour(s.colour)).attr("stroke-width", 1.7)
    .attr("stroke-dasharray", s.dashed ? "5 4" : null)
    .attr("d", d3.line().defined((p) => known(p[1])).x((p) => x(p[0])).y((p) => y(p[1]))(
      s.values.flatMap((v, i) => [[edge(i), v], [edge(i + 1), v]]))));
  const cursor = svg.append("line").attr("class", "cursor").attr("y1", area.top).attr("y2", area.bottom).attr("visibility", "hidden");
  reader(box, svg, id, n, (px) => Math.floor((x.invert(px) - bins.start) / bins.width),
    (i) => cursor.attr("visibility", "visible").attr("x1", (x(edge(i)) + x(edge(i + 1))) / 2).attr("x2", (x(edge(i)) + x(edge(i + 1))) / 2),
    (i) => `${as.seconds(bins.start + i * bins.width)}: ` + series.map((s) => `${s.name} ${text(s.values[i])}`).join(", "));
}

function timeTable(chart) {
  const n = Math.max(...chart.series.map((s) => s.values.length), 0);
  return (caption) => table(caption, [["from the start", (i) => as.seconds(chart.bins.start + i * chart.bins.width), "number"],
    ...chart.series.map((s) => [s.name, (i) => chart.text(s.values[i]), "number"])], Array.from({ length: n }, (_, i) => i));
}

/* Lines through points [x, y], with limits. */
function lineChart(box, { id, label, end, curves, text, limit }) {
  const width = chartWidth(box), height = CHART_HEIGHT;
  const area = { left: 62, right: width - 8, top: 8, bottom: height - 24 };
  const svg = canvas(box, id, width, height, label);
  const points = curves.flatMap((c) => c.points);
  const from = Math.min(0, ...points.map((p) => p[0]));
  const x = d3.scaleLinear().domain([from, Math.max(end, ...points.map((p) => p[0])) || 1]).range([area.left, area.right]);
  const y = d3.scaleLinear().domain([0, Math.max(limit || 0, ...points.map((p) => p[1])) * 1.04 || 1]).range([area.bottom, area.top]);
  frame(svg, x, y, area, text);
  curves.forEach((c) => {
    svg.append("path").attr("class", "curve").attr("fill", "none").attr("stroke", colour(c.colour)).attr("stroke-width", 1.7)
      .attr("d", d3.line().x((p) => x(p[0])).y((p) => y(p[1]))(c.points));
    if (c.points.length < 3) {
      svg.selectAll(null).data(c.points).enter().append("circle").attr("r", 3).attr("fill", colour(c.colour))
        .attr("cx", (p) => x(p[0])).attr("cy", (p) => y(p[1]));
    }
  });
  if (known(limit)) {
    svg.append("line").attr("class", "limit").attr("x1", area.left).attr("x2", area.right).attr("y1", y(limit)).attr("y2", y(limit));
    svg.append("text").attr("class", "label").attr("x", area.right).attr("y", y(limit) + 13).attr("text-anchor", "end")
      .text(`limit ${text(limit)}`);
  }
  const times = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
  const cursor = svg.append("line").attr("class", "cursor").attr("y1", area.top).attr("y2", area.bottom).attr("visibility", "hidden");
  const last = (c, t) => c.points.filter((p) => p[0] <= t).pop();
  reader(box, svg, id, times.length, (px) => d3.bisectLeft(times, x.invert(px)),
    (i) => cursor.attr("visibility", "visible").attr("x1", x(times[i])).attr("x2", x(times[i])),
    (i) => `${as.seconds(times[i])}: ` + curves.map((c) => `${c.name} ${text((last(c, times[i]) || [])[1])}`).join(", "));
}

/* Rows of one bar each, made of segments [{name, colour, value}]; total(row) stands at its end. */
function barChart(box, { id, label, rows, name, segments, total, most }) {
  const width = chartWidth(box), step = 24, narrow = width < 460;
  const left = narrow ? 0 : Math.min(260, width * 0.3), right = 92, line = narrow ? step + 14 : step;
  const svg = canvas(box, id, width, rows.length * line + 4, label);
  const sums = rows.map((row) => segments(row).reduce((sum, s) => sum + Math.max(0, s.value || 0), 0));
  const x = d3.scaleLinear().domain([0, most || Math.max(...sums) || 1]).range([left, width - right]);
  rows.forEach((row, i) => {
    const y = i * line + (narrow ? 15 : 3);
    let at = 0;
    const text = svg.append("text").attr("class", "rowname").attr("x", narrow ? 0 : left - 8).attr("y", narrow ? y - 3 : y + 13)
      .attr("text-anchor", narrow ? "start" : "end").text(fit(name(row), narrow ? width - right : left - 10, 6.3));
    text.append("title").text(name(row));
    segments(row).forEach((s) => {
      const value = Math.max(0, s.value || 0);
      if (value > 0) {
        svg.append("rect").attr("class", "segment").attr("data-row", i).attr("data-name", s.name).attr("data-value", s.value)
          .attr("x", x(at)).attr("y", y).attr("height", 17).attr("width", Math.max(0.5, x(at + value) - x(at)))
          .attr("fill", colour(s.colour)).append("title").text(`${name(row)}: ${s.name} ${s.text}`);
      }
      at += value;
    });
    svg.append("text").attr("class", "value").attr("x", x(at) + 6).attr("y", y + 13).text(total(row));
  });
}

/* Cut in the middle to what has room. */
function fit(text, room, perLetter) {
  const most = Math.max(6, Math.floor(room / perLetter));
  const letters = [...text];
  if (letters.length <= most) return text;
  const tail = Math.floor((most - 1) * 0.6);
  return letters.slice(0, most - 1 - tail).join("") + "\u2026" + letters.slice(letters.length - tail).join("");
}

/* points: [x, y, group] */
function scatterChart(box, { id, label, points, xText, yText, xName, yName, group, describe }) {
  const width = chartWidth(box), height = 260;
  const area = { left: 56, right: width - 10, top: 10, bottom: height - 36 };
  const svg = canvas(box, id, width, height, label);
  const x = d3.scaleLinear().domain([0, Math.max(...points.map((p) => p[0])) * 1.03 || 1]).range([area.left, area.right]);
  const y = d3.scaleLinear().domain([0, Math.max(...points.map((p) => p[1])) * 1.05 || 1]).range([area.bottom, area.top]);
  svg.append("g").attr("class", "grid").attr("transform", `translate(${area.left},0)`)
    .call(d3.axisLeft(y).ticks(5).tickSize(-(area.right - area.left)).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${area.bottom})`)
    .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 110))).tickFormat(onAxis(xText)).tickSizeOuter(0));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${area.left},0)`)
    .call(d3.axisLeft(y).ticks(5).tickFormat(onAxis(yText)).tickSizeOuter(0));
  svg.append("text").attr("class", "label").attr("x", area.right).attr("y", height - 4).attr("text-anchor", "end").text(xName);
  svg.append("text").attr("class", "label").attr("x", area.left + 5).attr("y", area.top + 4).text(yName);
  svg.selectAll("circle").data(points).enter().append("circle").attr("class", "point").attr("r", points.length > 400 ? 2 : 3)
    .attr("cx", (p) => x(p[0])).attr("cy", (p) => y(p[1])).attr("fill", (p) => colour(group(p[2])))
    .attr("fill-opacity", points.length > 100 ? 0.6 : 0.85);
  const order = points.map((_, i) => i).sort((a, b) => points[a][0] - points[b][0] || points[a][1] - points[b][1]);
  const ring = svg.append("circle").attr("class", "ring").attr("r", 5.5).attr("visibility", "hidden");
  reader(box, svg, id, points.length, (px, py) => {
    const distance = (i) => (x(points[i][0]) - px) ** 2 + (y(points[i][1]) - py) ** 2;
    return order.reduce((best, i, k) => (distance(i) < distance(order[best]) ? k : best), 0);
  }, (k) => ring.attr("visibility", "visible").attr("cx", x(points[order[k]][0])).attr("cy", y(points[order[k]][1])),
  (k) => describe(points[order[k]]));
}

/*
 * A row for each thread, a bar for each task. The height of a bar is divided as its time was: one path
 * for each class, however many tasks there are. A line below each bar shows the kind of its task.
 */
function streamChart(box, { id, label, lanes, bars, cells, cell, classes, kinds, end, describe }) {
  const width = chartWidth(box), narrow = width < 560;
  const left = narrow ? 4 : Math.min(210, width * 0.22), right = width - 8;
  const row = Math.max(10, Math.min(24, Math.floor(420 / Math.max(1, lanes.length))));
  const bottom = lanes.length * row + 6;
  const svg = canvas(box, id, width, bottom + 24, label);
  const x = d3.scaleLinear().domain([0, end || 1]).range([left, right]);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`)
    .call(timeAxis(x, right - left));
  const paths = classes.map(() => []), strips = kinds.map(() => []);
  const lost = [];
  const strip = row < 14 ? 1 : 2, height = row - 2 - strip;
  (cells || []).forEach((values, lane) => {
    for (let i = 0; i * classes.length < values.length; i++) {
      const parts = values.slice(i * classes.length, (i + 1) * classes.length).map((v) => Math.max(0, v) / 1000);
      const over = Math.max(1, parts.reduce((a, b) => a + b, 0));
      const x0 = x(i * cell), w = Math.max(0.5, x((i + 1) * cell) - x0);
      let y = lane * row + 3 + height;
      parts.forEach((p, k) => {
        if ((p / over) * height < 0.05) return;
        y -= (p / over) * height;
        paths[k].push(`M${x0.toFixed(1)},${y.toFixed(1)}h${w.toFixed(1)}v${((p / over) * height).toFixed(1)}h${(-w).toFixed(1)}z`);
      });
    }
  });
  bars.forEach((bar) => {
    const x0 = x(bar.begin), w = Math.max(0.8, x(bar.begin + bar.wall) - x0 - 0.4), y0 = bar.lane * row + 3;
    const sum = bar.classes.reduce((s, c) => s + Math.max(0, c || 0), 0);
    let y = y0 + height;
    if (!cells) bar.classes.forEach((c, k) => {
      const part = sum > 0 ? (Math.max(0, c || 0) / sum) * height : k === classes.length - 1 ? height : 0;
      if (part < 0.05) return;
      y -= part;
      paths[k].push(`M${x0.toFixed(1)},${y.toFixed(1)}h${w.toFixed(1)}v${part.toFixed(1)}h${(-w).toFixed(1)}z`);
    });
    if (!cells) strips[bar.kind].push(`M${x0.toFixed(1)},${y0 + height}h${w.toFixed(1)}v${strip}h${(-w).toFixed(1)}z`);
    if (bar.state !== "ok" && bar.state !== "running")
      lost.push(`M${x0.toFixed(1)},${y0}h${w.toFixed(1)}v${height}h${(-w).toFixed(1)}z`);
  });
  classes.forEach((c, k) => svg.append("path").attr("class", "class").attr("data-name", c.id).attr("fill", colour(c.id)).attr("d", paths[k].join("")));
  kinds.forEach((kind, k) => svg.append("path").attr("class", "kind").attr("data-name", kind.name).attr("fill", colour(kind.colour)).attr("d", strips[k].join("")));
  svg.append("path").attr("fill", "none").attr("stroke", colour("high")).attr("stroke-width", 1.3).attr("d", lost.join(""));
  let last = null;
  lanes.forEach((lane, i) => {
    if (!narrow && lane !== last && row * lanes.filter((l) => l === lane).length >= 9) {
      svg.append("text").attr("class", "rowname").attr("x", left - 8).attr("y", i * row + Math.max(11, row / 2 + 7)).attr("text-anchor", "end")
        .text(fit(lane, left - 10, 6.6)).append("title").text(lane);
    }
    last = lane;
  });
  const ring = svg.append("rect").attr("class", "ring").attr("visibility", "hidden").attr("height", row);
  reader(box, svg, id, bars.length, (px, py) => {
    const lane = Math.floor((py - 3) / row), t = x.invert(px);
    let best = 0, distance = Infinity;
    bars.forEach((bar, i) => {
      const d = Math.abs(bar.lane - lane) * 1e6 + Math.max(bar.begin - t, t - bar.begin - bar.wall, 0);
      if (d < distance) [best, distance] = [i, d];
    });
    return best;
  }, (i) => ring.attr("visibility", "visible").attr("x", x(bars[i].begin)).attr("y", bars[i].lane * row + 2)
    .attr("width", Math.max(2, x(bars[i].begin + bars[i].wall) - x(bars[i].begin))), (i) => describe(bars[i]));
}
