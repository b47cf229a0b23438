/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts: SVG with D3's scales, axes and shapes. Colours come from the style by class or variable. */

const CHART_HEIGHT = 210;
const cursors = new Map(); // position of the cursor by chart, kept over redraws

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

/* A time axis since the run's start, with whole numbers of its unit. */
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

/* The text next to the pointer or the cursor, and its chart. */
const tip = { id: null, x: 0, y: 0 };

function placeTip(out, x, y) {
  const width = document.documentElement.clientWidth;
  out.hidden = false;
  out.style.left = `${Math.max(4, Math.min(x + 14, width - out.offsetWidth - 4))}px`;
  out.style.top = `${y + out.offsetHeight + 24 > window.innerHeight ? Math.max(4, y - out.offsetHeight - 12) : y + 16}px`;
}

/*
 * A cursor that follows the pointer and the arrow keys; text(i) returns its text: a head and lines. The text is
 * shown at the pointer, or at the mark that the keys moved, and is the slider's value for a screen reader.
 */
function reader(box, svg, id, count, at, move, text) {
  const out = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const node = svg.node();
  let now = -1;
  function show(i) {
    now = Math.max(0, Math.min(count - 1, i));
    cursors.set(id, now);
    move(now);
    const [head, ...lines] = text(now);
    out.replaceChildren(h("b", {}, head), ...lines.map((line) => h("span", {}, line)));
    node.setAttribute("aria-valuenow", now);
    node.setAttribute("aria-valuetext", `${head}: ${lines.join(", ")}`);
  }
  function showAt(x, y) {
    Object.assign(tip, { id, x, y });
    placeTip(out, x, y);
  }
  function hide() {
    tip.id = null;
    out.hidden = true;
  }
  function atMark() {
    const mark = node.querySelector(".cursor, .ring").getBoundingClientRect();
    showAt(mark.left + mark.width / 2, mark.top + Math.min(20, mark.height / 2));
  }
  svg.attr("role", "slider").attr("tabindex", 0).attr("aria-valuemin", 0).attr("aria-valuemax", Math.max(0, count - 1))
    .attr("aria-valuenow", 0).attr("aria-valuetext", "use the arrow keys");
  node.addEventListener("pointermove", (event) => {
    if (!count) return;
    const rect = node.getBoundingClientRect();
    const scale = node.viewBox.baseVal.width / rect.width;
    show(at((event.clientX - rect.left) * scale, (event.clientY - rect.top) * scale));
    showAt(event.clientX, event.clientY);
  });
  node.addEventListener("pointerleave", hide);
  node.addEventListener("blur", hide);
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!count || event.altKey || event.ctrlKey || event.shiftKey) return;
    if (step) show(now + step);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(count - 1);
    else if (event.key === "Escape") return hide();
    else return;
    event.preventDefault();
    atMark();
  });
  box.append(out);
  if (cursors.has(id) && count) show(cursors.get(id));
  if (tip.id === id && now >= 0) placeTip(out, tip.x, tip.y);
  return (i) => {
    show(i);
    atMark();
  };
}

/*
 * Series over time. bins: {start, width} in seconds; series: [{name, colour, values, dashed, line}], a value
 * for each bin, null if unknown. Stacked as areas, except those with `line`.
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
  const top = Math.max(chart.least || 0, ...tops, ...lines) || 1, low = Math.min(0, ...lows);
  // clocks differ by microseconds: do not extend the axis for values less than a line high
  const y = d3.scaleLinear().domain([low < -top / 50 ? low : 0, top])
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
    (i) => [as.seconds(bins.start + i * bins.width), ...series.map((s) => `${s.name} ${text(s.values[i])}`)]);
}

/* The chart's numbers as columns and rows of a table. */
function timeTable(chart) {
  const n = Math.max(...chart.series.map((s) => s.values.length), 0);
  return [[["from the start", (i) => chart.bins.start + i * chart.bins.width, as.seconds],
    ...chart.series.map((s) => [s.name, (i) => s.values[i], chart.text])], Array.from({ length: n }, (_, i) => i)];
}

const NEAR_LIMIT = 0.4;

/* Lines through points [x, y]. The limit is drawn if they come near it, else it is given as text. */
function lineChart(box, { id, label, end, curves, text, limit }) {
  const width = chartWidth(box), height = CHART_HEIGHT;
  const area = { left: 62, right: width - 8, top: 8, bottom: height - 24 };
  const svg = canvas(box, id, width, height, label);
  const points = curves.flatMap((c) => c.points);
  const from = Math.min(0, ...points.map((p) => p[0]));
  const x = d3.scaleLinear().domain([from, Math.max(end, ...points.map((p) => p[0])) || 1]).range([area.left, area.right]);
  const top = Math.max(...points.map((p) => p[1])), near = known(limit) && top > NEAR_LIMIT * limit;
  const y = d3.scaleLinear().domain([0, Math.max(near ? limit : 0, top) * 1.04 || 1]).range([area.bottom, area.top]);
  frame(svg, x, y, area, text);
  curves.forEach((c) => {
    svg.append("path").attr("class", "curve").attr("fill", "none").attr("stroke", colour(c.colour)).attr("stroke-width", 1.7)
      .attr("d", d3.line().x((p) => x(p[0])).y((p) => y(p[1]))(c.points));
    if (c.points.length < 3) {
      svg.selectAll(null).data(c.points).enter().append("circle").attr("r", 3).attr("fill", colour(c.colour))
        .attr("cx", (p) => x(p[0])).attr("cy", (p) => y(p[1]));
    }
  });
  if (near) {
    svg.append("line").attr("class", "limit").attr("x1", area.left).attr("x2", area.right).attr("y1", y(limit)).attr("y2", y(limit));
    svg.append("text").attr("class", "label").attr("x", area.right).attr("y", y(limit) + 13).attr("text-anchor", "end")
      .text(`limit ${text(limit)}`);
  }
  const times = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
  const cursor = svg.append("line").attr("class", "cursor").attr("y1", area.top).attr("y2", area.bottom).attr("visibility", "hidden");
  const last = (c, t) => c.points.filter((p) => p[0] <= t).pop();
  reader(box, svg, id, times.length, (px) => d3.bisectLeft(times, x.invert(px)),
    (i) => cursor.attr("visibility", "visible").attr("x1", x(times[i])).attr("x2", x(times[i])),
    (i) => [as.seconds(times[i]), ...curves.map((c) => `${c.name} ${text((last(c, times[i]) || [])[1])}`)]);
}

/* Paths without their common folders. */
function distinct(names) {
  const folders = names.map((name) => name.split("/").slice(0, -1));
  let shared = 0;
  while (names.length > 1 && folders.every((f) => f.length > shared && f[shared] === folders[0][shared])) shared++;
  return shared > 1 ? names.map((name) => `\u2026/${name.split("/").slice(shared).join("/")}`) : names;
}

/* Rows of one bar each, made of segments [{name, colour, value}]; total(row) is printed at its end. */
function barChart(box, { id, label, rows, name, segments, total, most }) {
  const width = chartWidth(box), step = 24, narrow = width < 460;
  const left = narrow ? 0 : Math.min(260, width * 0.3), right = 92, line = narrow ? step + 14 : step;
  const svg = canvas(box, id, width, rows.length * line + 4, label);
  const sums = rows.map((row) => segments(row).reduce((sum, s) => sum + Math.max(0, s.value || 0), 0));
  const x = d3.scaleLinear().domain([0, most || Math.max(...sums) || 1]).range([left, width - right]);
  const short = distinct(rows.map(name));
  rows.forEach((row, i) => {
    const y = i * line + (narrow ? 15 : 3);
    let at = 0;
    const text = svg.append("text").attr("class", "rowname").attr("x", narrow ? 0 : left - 8).attr("y", narrow ? y - 3 : y + 13)
      .attr("text-anchor", narrow ? "start" : "end").text(fit(short[i], narrow ? width - right : left - 10, 6.3));
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

/* Cuts the middle so that the text fits. */
function fit(text, room, perLetter) {
  const most = Math.max(6, Math.floor(room / perLetter));
  const letters = [...text];
  if (letters.length <= most) return text;
  const tail = Math.floor((most - 1) * 0.6);
  return letters.slice(0, most - 1 - tail).join("") + "\u2026" + letters.slice(letters.length - tail).join("");
}
