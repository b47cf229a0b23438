/* SPDX-License-Identifier: BSD-3-Clause */
/* The panels: each draws one part of the data into its section. */

/* Kinds of tasks, in the order of enum task_class. */
const KINDS = [
  { name: "processing", colour: "s4" },
  { name: "preprocessing", colour: "s2" },
  { name: "merging", colour: "s3" },
  { name: "other tasks", colour: "s6" },
];

function metric(d, id) {
  const found = d.byId.get(id);
  return found && known(found.value) ? found.value : null;
}

function metricText(d, id) {
  const found = d.byId.get(id);
  return found ? found.text ?? UNKNOWN : UNKNOWN;
}

/* The classes, and the time of tasks whose classes were not measured, if there is any. */
function parts(d) {
  const some = d.time.classes.unmeasured > 0 || (d.time.budget && d.time.budget.unmeasured > 0);
  return some ? [...d.classes, { id: "unmeasured", name: "not measured", colour: "s5" }] : d.classes;
}

function classRow(d) {
  return parts(d).map((c) => ({ ...c, seconds: d.time.classes[c.id] }));
}

function basis(d) {
  return d.time.all_attempts ? "all attempts" : "counted tasks";
}

/* --- the summary at the top */

function fast(d) {
  const events = metric(d, "total_events"), wall = metric(d, "wall_time");
  const rate = metric(d, "event_rate_wall_khz");
  const lead = known(rate) && events > 0 ? `${rate < 10 ? short(rate * 1e3) : groups((rate * 1e3).toPrecision(4))} events/s`
    : known(wall) && wall > 0 ? `${short(metric(d, "num_tasks") / wall)} tasks/s` : UNKNOWN;
  const more = [known(events) && events > 0 ? `${as.count(events)} events in ${as.seconds(wall)}` : `${as.count(metric(d, "num_tasks"))} tasks in ${as.seconds(wall)}`,
    `read ${metricText(d, "read_rate_mbs")}, from storage ${metricText(d, "storage_read_rate_mbs")}, decompressed ${metricText(d, "decompressed_rate_mbs")}`];
  return [lead, more];
}

/* threads x wall time = CPU + waits + not measured + idle: the parts of one whole, largest first */
function budget(d) {
  const b = d.time.budget;
  if (!b || !(b.thread_seconds > 0)) return [];
  return [...parts(d), { id: "idle", name: "no task" }].map((c) => ({ ...c, seconds: b[c.id], part: share(b[c.id], b.thread_seconds) }))
    .filter((c) => known(c.seconds) && c.seconds > 0).sort((x, y) => y.seconds - x.seconds);
}

function heldBack(d) {
  const parts = budget(d);
  if (!parts.length) return [UNKNOWN, ["the threads' time could not be classified"]];
  const b = d.time.budget;
  return [`${parts[0].name}: ${as.percent(parts[0].part)} of the threads\u2019 time`,
    [parts.slice(1).filter((c) => c.part >= 1).map((c) => `${c.name} ${as.percent(c.part)}`).join(", ") || "nothing else above 1 %",
      `of ${as.seconds(b.thread_seconds)}: ${Number(b.threads.toFixed(2))} threads for ${as.seconds(b.wall_seconds)}`]];
}

function toChange(d) {
  const f = d.findings;
  if (!f) return [UNKNOWN, []];
  const row = f.rows.find((r) => r.severity !== "note") || f.rows[0]; // as in the report
  if (row) return [row.advice, [row.sentence, ...(row.cost ? [row.cost] : [])]];
  return ["no findings", [`${f.made} of ${f.checks} checks could be made, ${f.idle} did not apply`]];
}

function drawAnswers(box, d) {
  [["How fast was it?", fast(d), ""], ["What held it back?", heldBack(d), ""], ["What to change?", toChange(d), " sentence"]]
    .forEach(([title, [lead, more], kind]) => box.append(h("div", { class: "answer" }, h("h2", {}, title),
      h("p", { class: "lead" + kind }, shown(lead)), more.map((text) => h("p", {}, text)))));
}

const FIGURES = [
  ["Speed", [["wall time", "wall_time"], ["events", "total_events"], ["chunks", "num_chunks"], ["tasks counted", "num_tasks"], ["attempts", "num_attempts"],
    ["threads", "total_cores"], ["workers, average", "avg_workers"], ["core efficiency, CPU", "core_efficiency_true"]]],
  ["Bytes", [["requested (coffea)", "total_bytes_read_coffea"], ["read", "read_bytes"], ["mapped", "mapped_bytes"], ["from storage", "disk_read_bytes"],
    ["from the network", "network_read_bytes"], ["decompressed", "bytes_read_uncompressed"], ["compression", "compression_ratio"]]],
  ["Memory and waste", [["peak worker memory", "peak_memory_per_worker_bytes"], ["read amplification", "read_amplification"], ["wasted CPU", "wasted_cpu_seconds"]]]];

function drawFigures(box, d) {
  for (const [title, figures] of FIGURES) {
    box.append(h("h3", {}, title), h("dl", { class: "figures" }, figures.map(([name, id]) =>
      h("div", { "data-metric": id }, h("dt", {}, name), h("dd", {}, shown(metricText(d, id)))))));
  }
}

function costs(r) {
  return r.cost ? [h("p", { class: "cost" }, r.cost)] : [];
}

function drawFindings(box, d) {
  const f = d.findings;
  if (!f) return box.append(h("p", { class: "what" }, "The findings are unknown."));
  if (!f.rows.length) box.append(h("p", {}, "No findings."));
  box.append(h("ul", { class: "findings" }, f.rows.map((r) => h("li", { class: r.severity, "data-finding": r.id },
    h("p", {}, h("span", { class: "severity" }, r.severity), r.sentence), ...costs(r), h("p", { class: "advice" }, r.advice),
    folded(`finding-${r.id}`, `Evidence of ${r.id}`, [["what", (e) => e.name, "name"],
      ["value", (e) => (e.value === null ? UNKNOWN : typeof e.value === "number" && !Number.isInteger(e.value) ? String(Number(e.value.toPrecision(6))) : as.text(e.value)), "number"],
      ["unit", (e) => e.unit || " "]], r.evidence, "Evidence")))));
  box.append(shownOf(f.rows.length, f.total, "findings") || "");
  box.append(h("p", { class: "shown" }, `${f.made} of ${f.checks} checks were made, ${f.idle} did not apply to this run` +
    (f.gaps.length ? `, ${f.gaps.length} lacked an input: ${f.gaps.map((g) => `${g.id} (${g.unknown})`).join(", ")}` : "") + "."));
}

/* --- time */

function drawTime(box, d) {
  const classes = classRow(d), wall = d.time.wall_seconds;
  if (d.time.all_attempts) box.append(h("p", { class: "what" }, "Less than half of the time belongs to attempts that count, so this covers all attempts."));
  box.append(legend(classes.filter((c) => c.seconds !== 0).map((c) => ({ name: c.name, colour: c.colour, value: `${as.seconds(c.seconds)} ${known(c.seconds) ? `(${as.percent(share(c.seconds, wall))})` : ""}` }))));
  barChart(box, { id: "chart-time", label: `Where the time of ${basis(d)} went, in total`, rows: [0], name: () => basis(d),
    segments: () => classes.map((c) => ({ name: c.name, colour: c.colour, value: c.seconds, text: as.seconds(c.seconds) })), total: () => as.seconds(wall) });
  box.append(folded("table-time", `Where the time of ${basis(d)} went`,
    [["class", (c) => c.name], ["time", (c) => c.seconds, as.seconds], ["of wall", (c) => share(c.seconds, wall), as.percent]],
    [...classes, { name: "wall time of tasks", seconds: wall }, { name: "CPU of pool threads (not included)", seconds: d.time.pool_cpu_seconds }]));
}

/* From the start of the command to the end of the program, in the order of a simple analysis. */
function drawClient(box, d) {
  const c = d.client, wall = c.wall_seconds;
  const parts = c.parts.map((p, i) => ({ ...p, colour: i === c.parts.length - 1 ? "s6" : `s${i % 6}` })).filter((p) => p.seconds !== 0);
  box.append(legend(parts.map((p) => ({ name: p.name, colour: p.colour, value: known(p.seconds) ? `${as.seconds(p.seconds)} (${as.percent(share(p.seconds, wall))})` : UNKNOWN }))));
  barChart(box, { id: "chart-client", label: "Where the wall time of the client went", rows: [0], name: () => "client",
    segments: () => parts.map((p) => ({ ...p, value: p.seconds, text: as.seconds(p.seconds) })), total: () => as.seconds(wall) });
  if (c.unseen) box.append(h("p", { class: "shown" }, `Unknown parts are in the rest: ${c.unseen}`));
  box.append(folded("table-client", "Where the wall time of the client went",
    [["part", (p) => p.name], ["time", (p) => p.seconds, as.seconds], ["of all", (p) => share(p.seconds, wall), as.percent]],
    [...parts, { name: "all", seconds: wall }]));
}

/* values per second of each bin; the last bin may be shorter */
function perSecond(t, values, factor) {
  return values.map((v, i) => {
    const width = Math.min(t.bin_seconds, t.stop - t.start - i * t.bin_seconds);
    return known(v) && width > 0 ? (v / width) * factor : null;
  });
}

function drawOverTime(box, d) {
  const l = d.levels, thousandths = (values) => values.map((v) => v / 1000);
  const series = d.classes.map((c) => ({ name: c.name, colour: c.colour, values: thousandths(l.classes[c.id]) })).filter((c) => c.values.some((v) => v >= 0.001));
  if (l.threads.length) series.push({ name: "threads of the workers", colour: "ink", line: true, dashed: true, values: thousandths(l.threads) });
  const chart = { id: "chart-overtime", label: "Where the time went, over the run", bins: { start: 0, width: (l.bin || 0) / 1e6 }, series, text: as.number };
  box.append(legend(chart.series));
  timeChart(box, chart);
  box.append(folded("table-overtime", "Threads in each class, by time", ...timeTable(chart)));
}

function drawGbps(box, d) {
  const t = d.timeline;
  const all = d.layers.map((l) => ({ ...l, line: true, values: perSecond(t, t.layers[l.id], 8e-9) }));
  const series = all.filter((s, i) => !i || s.values.some((v) => v > 0)), unseen = all.filter((s) => !s.values.some(known));
  const chart = { id: "chart-gbps", label: "Gbit/s over time, by layer", bins: { start: 0, width: t.bin_seconds, end: d.wall }, series, text: as.gbps, axisText: (v) => short(v), least: 1e-6 };
  box.append(legend(series, true));
  timeChart(box, chart);
  if (unseen.length) box.append(h("p", { class: "shown" }, `unknown: ${unseen.map((s) => s.name).join(", ")}`));
  box.append(folded("table-gbps", "Gbit/s by layer and time", ...timeTable(chart)));
}

function drawLevels(box, d) {
  const l = d.levels;
  const thousandths = (values) => values.map((v) => v / 1000);
  const series = [{ name: "running tasks", colour: "bar", values: thousandths(l.tasks) }, { name: "workers", colour: "s1", line: true, values: thousandths(l.workers) }];
  if (l.threads.length) series.push({ name: "threads", colour: "ink", line: true, dashed: true, values: thousandths(l.threads) });
  const chart = { id: "chart-levels", label: "Workers, their threads and running tasks", bins: { start: 0, width: (l.bin || 0) / 1e6 }, series, text: as.number };
  box.append(legend(series));
  timeChart(box, chart);
  box.append(folded("table-levels", "Workers, threads and running tasks by time", ...timeTable(chart)));
}

function drawMemory(box, d) {
  const m = d.memory, rows = m.workers.filter((w) => w.points.length);
  if (!rows.length) return box.append(h("p", { class: "what" }, "This run has no sample of a worker\u2019s memory."));
  const limits = [...new Set(m.workers.map((w) => w.limit_bytes))];
  const curves = rows.map((w, i) => ({ name: w.worker, colour: `s${i % 7}`, points: w.points.map((p) => [p[0] / 1e6, p[1]]) }));
  box.append(legend(curves, true));
  lineChart(box, { id: "chart-memory", label: "Resident memory of workers over time, against the limit", end: d.wall, curves, text: as.bytes,
    limit: limits.length === 1 && known(limits[0]) ? limits[0] : null });
  if (limits.length > 1) box.append(h("p", { class: "shown" }, "The limits differ; the table has each."));
  else box.append(h("p", { class: "shown" }, known(limits[0]) ? `Each limit is ${as.bytes(limits[0])}.` : "The limit is unknown."));
  box.append(shownOf(m.workers.length, m.total, "workers with the most memory") || "");
  box.append(folded("table-memory", "Memory by worker", [["worker", (w) => w.worker, "name"], ["peak", (w) => w.peak_bytes, as.bytes],
    ["limit", (w) => w.limit_bytes, as.bytes], ["peak / limit", (w) => share(w.peak_bytes, w.limit_bytes), as.percent]], m.workers));
}

/* The columns of contract/rows.def that have a title. */
function titled(list) {
  return list.columns.map((c) => [c.title, (r) => r[c.name], as[c.way]]);
}

/* --- tasks */

function drawStream(box, d) {
  const s = d.stream;
  const bars = s.bars.map(([key, lane, begin, wall, state, counted, kind, ...classes]) => ({ key, lane, begin: begin / 1e6, wall: wall / 1e6, state, counted, kind,
    classes: classes.map(ofMicro) }));
  box.append(legend(d.classes.map((c) => ({ name: c.name, colour: c.colour }))));
  const kinds = new Set(bars.map((b) => b.kind));
  if (!s.cells) box.append(legend(KINDS.filter((_, k) => kinds.has(k)), true));
  streamPanel(box, { id: "chart-stream", label: `Task stream: ${s.in_lanes} tasks on ${s.lanes.length} threads`, lanes: s.lanes, bars, cells: s.cells, cell: (s.cell || 0) / 1e6, classes: d.classes, kinds: KINDS,
    describe: (b) => [b.key, `on ${s.lanes[b.lane]}`, `${KINDS[b.kind].name}, ${b.state}${b.counted ? "" : ", not counted"}`, `from ${as.seconds(b.begin)}, ${as.seconds(b.wall)}`,
      ...d.classes.map((c, k) => ({ name: c.name, value: b.classes[k] })).filter((c) => known(c.value) && c.value !== 0).map((c) => `${c.name} ${as.seconds(c.value)}`)] }, d.wall || 1);
  box.append(s.cells ? h("p", { class: "shown" }, `shown ${groups(s.in_lanes)} of ${groups(s.total)} tasks, on ${groups(s.lanes.length)} of ${groups(s.lanes_total)} threads (those with the longest tasks), ` +
      `added up in cells of ${as.seconds(s.cell / 1e6)}, each task spread evenly over its duration; the cursor finds the ${groups(bars.length)} longest`)
    : shownOf(bars.length, s.total, `tasks, on ${groups(s.lanes.length)} of ${groups(s.lanes_total)} threads, those with the longest tasks`) || "");
  const slow = d.slowest;
  box.append(folded("table-stream", `The ${slow.rows.length} slowest of ${groups(slow.total)} tasks`, [["task", (r) => r.key, "name"],
    ["worker", (r) => r.worker, "name"], ["ended", (r) => (r.waste_reason ? `${r.status}, ${r.waste_reason}` : r.status)], ["wall", (r) => r.wall_seconds, as.seconds],
    ...d.classes.map((c) => [c.name, (r) => r.classes[c.id], as.seconds]),
    ["events", (r) => r.events, as.count], ["read", (r) => r.read_bytes, as.bytes]], slow.rows, "Table of the slowest tasks"));
}

/* As many rows of datasets as there are colours; the last one is for all others. */
function drawChunks(box, d) {
  const s = d.scatter, most = 6, many = s.datasets.length > most;
  const rows = s.datasets.slice(0, most).map(([name, chunks, median], i) => ({ name: `${as.text(name)}: ${as.count(chunks)} chunks, median ${as.seconds(ofMicro(median))}`,
    colour: `s${i}`, median: ofMicro(median) }));
  if (many) rows.push({ name: `${s.datasets.length - most} more`, colour: "s6", median: null });
  const points = s.points.filter((p) => known(p[1]) && known(p[3])).map(([events, wall, dataset, begin]) => ({ begin: begin / 1e6, wall: wall / 1e6, row: Math.min(dataset, most),
    text: [as.text(s.datasets[dataset][0]), `${as.seconds(wall / 1e6)} from ${as.seconds(begin / 1e6)}`, `${as.count(events)} events`] }));
  if (!points.length) return box.append(h("p", { class: "what" }, "No chunk whose time is known."));
  chunkChart(box, { id: "chart-scatter", label: "Wall time of chunks over the run, by dataset", points, rows, end: d.wall });
  box.append(shownOf(s.points.length, s.total, "chunks: the slowest, and an even sample of the others") || "");
  box.append(folded("table-scatter", "Chunks", [["dataset", (p) => s.datasets[p[2]][0], "name"], ["events", (p) => p[0], as.count],
    ["from", (p) => ofMicro(p[3]), as.seconds], ["wall", (p) => ofMicro(p[1]), as.seconds]], s.points));
}

/* --- bytes, files and workers */

/* "cramjam.cramjam" and "lz4.frame._frame" by their import names. */
function importName(library) {
  return library && library.replace(/\._.*$/, "").replace(/^(.+)\.\1$/, "$1");
}

function drawCodecs(box, d) {
  const c = d.codecs, cpu = metric(d, "total_cpu_time_true_all");
  if (!c.rows.length) return box.append(h("p", { class: "what" }, "No codec call was counted."));
  const name = (r) => `${as.text(r.codec)} (${as.text(importName(r.library))})`;
  const rows = [...c.rows].sort((a, b) => (b.cpu_seconds || 0) - (a.cpu_seconds || 0));
  barChart(box, { id: "chart-codecs", label: "CPU of decompression by codec", rows, name,
    segments: (r) => [{ name: "decompression CPU", colour: "bar", value: r.cpu_seconds, text: as.seconds(r.cpu_seconds) }], total: (r) => as.seconds(r.cpu_seconds) });
  box.append(shownOf(c.rows.length, c.total, "codecs") || "");
  box.append(folded("table-codecs", "Decompression of all attempts", [["codec (library)", name, "name"], ...titled(c), ["ratio", (r) => r.in_bytes > 0 && known(r.out_bytes) ? r.out_bytes / r.in_bytes : null, as.times],
    ["of all CPU", (r) => share(r.cpu_seconds, cpu), as.percent],
    ["speed, out", (r) => (r.cpu_seconds > 0 && known(r.out_bytes) ? r.out_bytes / r.cpu_seconds : null), as.rate],
    ["compressed", (r) => r.compress_in_bytes, as.bytes]], rows));
}

/* Bytes read from a file: once in baskets, once outside of them, and again. */
function fileSegments(r) {
  if (![r.read_bytes, r.reread_bytes, r.outside_basket_bytes].every(known)) {
    return [["read (not classified)", "s6", r.read_bytes], ["from the network", "s2", r.network_read_bytes]];
  }
  return [["baskets", "bar", r.read_bytes - r.reread_bytes - r.outside_basket_bytes], ["outside baskets", "s4", r.outside_basket_bytes], ["read again", "s1", r.reread_bytes]];
}

function drawFiles(box, d) {
  const f = d.files;
  if (!f.rows.length) return box.append(h("p", { class: "what" }, "No data file was read."));
  const onlyWritten = (r) => r.read_bytes === 0 && !r.network_read_bytes && !r.mapped_bytes;
  const rows = f.rows.filter((r) => !onlyWritten(r)).slice(0, 12), segments = (r) => fileSegments(r).map(([name, colour, value]) => ({ name, colour, value, text: as.bytes(value) }));
  const names = new Map(rows.flatMap(segments).filter((s) => s.value > 0).map((s) => [s.name, s]));
  box.append(legend([...names.values()].map((s) => ({ name: s.name, colour: s.colour }))));
  barChart(box, { id: "chart-files", label: "Bytes read from each file", rows, name: (r) => r.path, segments,
    total: (r) => as.bytes(known(r.read_bytes) ? r.read_bytes : r.network_read_bytes) });
  box.append(shownOf(rows.length, f.total, "files, those with the most bytes read again or outside baskets") || "");
  const first = ["path", "read_amplification"], last = ["filesystem"], named = [...first, ...last];
  const of = (names) => names.map((name) => f.columns.find((c) => c.name === name));
  const columns = [...of(first), ...f.columns.filter((c) => !named.includes(c.name)), ...of(last)];
  box.append(folded("table-files", `${f.rows.length} of ${groups(f.total)} files, all attempts`,
    columns.map((c) => [c.title, (r) => r[c.name], c.way === "text" ? (c.name === "path" ? "name" : undefined) : as[c.way]]), f.rows));
}

function classSegments(d, row) {
  return parts(d).map((c) => ({ name: c.name, colour: c.colour, value: row.classes[c.id], text: as.seconds(row.classes[c.id]) }));
}

function drawDatasets(box, d) {
  const s = d.datasets;
  if (!s.rows.length) return box.append(h("p", { class: "what" }, "No counted chunk."));
  const which = d.time.all_attempts ? "all attempts at chunks" : "counted chunks";
  barChart(box, { id: "chart-datasets", label: `Time of ${which} by dataset and class`, rows: s.rows.slice(0, 12), name: (r) => as.text(r.dataset), segments: (r) => classSegments(d, r),
    total: (r) => as.seconds(r.wall_seconds) });
  box.append(shownOf(Math.min(12, s.rows.length), s.total, "datasets with the most time") || "");
  box.append(folded("table-datasets", `${s.rows.length} of ${groups(s.total)} datasets, ${which}`, [["dataset", (r) => r.dataset, "name"],
    ["chunks", (r) => r.chunks, as.count], ["events", (r) => r.events, as.count], ["wall", (r) => r.wall_seconds, as.seconds], ["CPU", (r) => r.cpu_seconds, as.seconds],
    ["CPU per event", (r) => r.cpu_seconds_per_event, as.seconds], ["requested", (r) => r.requested_bytes, as.bytes], ["read", (r) => r.read_bytes, as.bytes],
    ["storage", (r) => r.storage_read_bytes, as.bytes], ["amplification", (r) => r.read_amplification, as.times]], s.rows));
}

function drawSections(box, d) {
  const name = (r) => `${r.section ?? "(beyond the table)"}${r.thread === "pool" ? " (pool)" : ""}`;
  const numbers = [...titled(d.sections), ["wall", (r) => r.wall_seconds, as.seconds], ["CPU", (r) => r.cpu_seconds, as.seconds],
    ["least", (r) => r.wall_min_seconds, as.seconds], ["median", (r) => r.wall_median_seconds, as.seconds], ["most", (r) => r.wall_max_seconds, as.seconds]];
  const all = d.sections, apart = d.sections_by_dataset;
  box.append(table("table-sections", `${all.rows.length} of ${groups(all.total)} sections, most time first`, [["section", name, "name"], ["tasks", (r) => r.prefix, "name"], ...numbers], all.rows));
  if (apart.rows.some((r) => r.dataset !== null)) {
    box.append(table("table-sections-dataset", `${apart.rows.length} of ${groups(apart.total)} by dataset, most time first`, [["section", name, "name"],
      ["dataset", (r) => (r.beyond ? "(beyond the table)" : as.text(r.dataset)), "name"], ...numbers], apart.rows));
  }
}

function drawBalance(box, d) {
  const b = d.balance;
  if (!b.rows.length) return box.append(h("p", { class: "what" }, "No worker has run a task."));
  barChart(box, { id: "chart-balance", label: "Time of tasks by worker and class", rows: b.rows, name: (r) => r.worker, segments: (r) => classSegments(d, r), total: (r) => as.seconds(r.wall_seconds) });
  box.append(shownOf(b.rows.length, b.total, "workers, the busiest and the least busy") || "");
  box.append(folded("table-balance", "All attempts by worker", [["worker", (r) => r.worker, "name"], ["host", (r) => r.host, "name"],
    ["threads", (r) => r.threads, as.count], ["tasks", (r) => r.tasks, as.count], ["events", (r) => r.events, as.count], ["wall", (r) => r.wall_seconds, as.seconds],
    ["CPU", (r) => r.cpu_seconds, as.seconds], ["read", (r) => r.read_bytes, as.bytes], ["storage", (r) => r.storage_read_bytes, as.bytes],
    ["end", (r) => (r.silent ? "silent" : r.end || "none yet")]], b.rows));
}

function drawWaits(box, d) {
  const b = d.blocking;
  if (!b.rows.length) return box.append(h("p", { class: "what" }, b.known ? `No wait of a task was longer than ${as.seconds(b.threshold_seconds)}.` : "Long waits were not recorded."));
  box.append(table("table-waits", `Waits longer than ${as.seconds(b.threshold_seconds)} by call site: ${b.rows.length} of ${groups(b.total)} places`, [
    ["line of your code", (r) => r.line || "none", "name"], ["innermost call", (r) => r.frames[0] || "no symbols", "name"], ["called by", (r) => r.frames.slice(1).join(" < ") || "none", "name"], ["waits for", (r) => r.wait], ["what", (r) => r.object || "none", "name"], ["tasks", (r) => r.prefix, "name"],
    ["waits", (r) => r.calls, as.count], ["time", (r) => r.seconds, as.seconds], ["longest", (r) => r.longest_seconds, as.seconds]], b.rows));
}

function drawServers(box, d) {
  box.append(table("table-servers", `${d.servers.rows.length} of ${groups(d.servers.total)} servers`, [["server", (r) => `${as.text(r.scheme)}://${as.text(r.server)}`, "name"],
    ...titled(d.servers), ["mean", (r) => (r.requests > 0 && known(r.latency_sum_s) ? r.latency_sum_s / r.requests : null), as.seconds]], d.servers.rows));
}

const COLUMN_KINDS = { together: "(several at once)", beyond: "(columns beyond the table)", rest: "(outside columns)" };

function drawColumns(box, d) {
  box.append(table("table-columns", `${d.columns.rows.length} of ${groups(d.columns.total)} columns`, [["column", (r) => COLUMN_KINDS[r.kind] || r.column, "name"], ["dataset", (r) => r.dataset || "none", "name"],
    ...titled(d.columns), ["asked for at", (r) => [...r.lines.map((line) => line.split("/").pop()), ...(r.more_lines ? ["..."] : [])].join(", ") || "none", "name"]], d.columns.rows));
}

/* Known only until a silent worker's last message: a lower bound. */
const lossText = (c, name) => (known(c[name]) || !known(c[`${name}_at_least`]) ? as.count(c[name]) : `at least ${as.count(c[`${name}_at_least`])}`);

function drawCompleteness(box, d) {
  const c = d.completeness, part = (what) => [c[`tasks_${what}`], c[`unattributed_${what}`], c[`unseen_${what}`], c[`process_${what}`]];
  box.append(h("p", {}, `${as.count(metric(d, "num_tasks"))} of ${as.count(metric(d, "num_attempts"))} attempts counted; ${as.count(c.workers_seen)} workers seen; ` +
    `${lossText(c, "records_refused")} records refused, ${lossText(c, "records_lost")} lost, ${as.count(c.records_bad)} not understood; ${as.count(c.files_read)} files read, ${as.count(c.files_torn)} damaged.`));
  const reasons = d.waste && typeof d.waste === "object" ? Object.entries(d.waste).filter(([, w]) => w.attempts !== 0) : [];
  if (reasons.length) box.append(table("table-waste", "Work that did not count", [["reason", (r) => r[0]], ["attempts", (r) => r[1].attempts, as.count], ["wall", (r) => r[1].wall_seconds, as.seconds], ["CPU", (r) => r[1].cpu_seconds, as.seconds]], reasons));
  box.append(folded("table-completeness", "Whole life of the run\u2019s workers: process = tasks + unattributed + unseen", [["", (r) => r[0]], ["tasks", (r) => r[1](r[2][0]), "number"],
    ["unattributed", (r) => r[1](r[2][1]), "number"], ["unseen", (r) => r[1](r[2][2]), "number"], ["process (getrusage)", (r) => r[1](r[2][3]), "number"]],
  [["CPU", as.seconds, part("cpu_seconds")], ["from storage", as.bytes, part("storage_bytes")]]));
  if (c.notes.length) box.append(h("ul", {}, c.notes.map((note) => h("li", {}, note))));
  box.append(shownOf(c.notes.length, c.notes_total, "notes") || "");
}

function drawMetrics(box, d) {
  const titles = [...new Set(d.metrics.map((m) => m.group))];
  titles.forEach((title, i) => box.append(folded(`metrics-${i}`, title, [["metric", (m) => (m.alias ? `${m.id} (${m.alias})` : m.id), "name"],
    ["value", (m) => m.text ?? UNKNOWN, "number"], ["unit", (m) => m.unit || " "], ["source", (m) => m.source], ["meaning", (m) => m.help, "name"]], d.metrics.filter((m) => m.group === title), title)));
}

const timed = (d) => d.timeline && known(d.timeline.start) && d.timeline.classes.cpu_seconds.length > 0;

/* id, title, its short form, explanation, width, drawing, whether there is something to draw */
const PANELS = [
  { id: "answers", draw: drawAnswers },
  { id: "findings", title: "Findings", draw: drawFindings },
  { id: "figures", nav: "Numbers", title: "In numbers", draw: drawFigures },
  { id: "time", nav: "Time", title: "Where the time went", what: "Wall time of tasks. Each class is measured separately; the rest is not classified.", draw: drawTime },
  { id: "client", nav: "Client", title: "Wall time of the client", what: "Seconds of the program that asked for the tasks. What it does while tasks run is its own part.", draw: drawClient, has: (d) => d.client },
  { id: "overtime", nav: "Over time", title: "Time classes over the run", what: "Threads in each class, for all attempts; a task\u2019s seconds are spread evenly over its duration.", half: true, draw: drawOverTime, has: (d) => d.levels.bin > 0 },
  { id: "gbps", nav: "Gbit/s", title: "Gbit/s by layer", what: "Bytes at the time they were read, from the workers\u2019 totals. Do not add layers: they contain the same data.", half: true, draw: drawGbps, has: timed },
  { id: "levels", nav: "Workers", title: "Workers and tasks", what: "From the start and end of tasks and workers.", half: true, draw: drawLevels },
  { id: "memory", nav: "Memory", title: "Memory against limit", what: "Resident set of each worker process, including the interpreter.", half: true, draw: drawMemory },
  { id: "stream", nav: "Tasks", title: "Task stream", what: "Each row is a thread. Colors divide a bar\u2019s height by class of time; the line below it shows the kind of task. A red frame marks an attempt that did not succeed.", draw: drawStream },
  { id: "scatter", nav: "Chunks", title: "Chunk time by dataset", what: "Start and duration of each chunk; the line is the median of all chunks of the dataset.", draw: drawChunks },
  { id: "codecs", title: "Codecs", half: true, what: "CPU inside decompress calls, all attempts.", draw: drawCodecs },
  { id: "files", nav: "Files", title: "Files by bytes", half: true, what: "Bytes that read calls returned, all attempts: used baskets, bytes outside baskets, and bytes read again.", draw: drawFiles },
  { id: "datasets", title: "Datasets", half: true, what: "Wall time of chunks by class.", draw: drawDatasets },
  { id: "balance", nav: "Balance", title: "Balance of workers", half: true, what: "Wall time of all attempts by class.", draw: drawBalance },
  { id: "columns", title: "Columns", what: "Time and bytes while a column was read and made arrays of; chunks of all attempts.", draw: drawColumns, has: (d) => d.columns.rows.length > 0 },
  { id: "sections", title: "Sections", what: "Sections named with crema.section, including inner sections; the median is within 9 %.", draw: drawSections, has: (d) => d.sections.rows.length > 0 },
  { id: "lines", nav: "Lines", title: "CPU, waits, bytes and memory by line of Python", what: "Stacks of tasks. The color is a frame\u2019s largest class of time. Click to enlarge.", draw: drawFlame, has: (d) => d.stacks.samples > 0 || hasMemory(d.stacks) },
  { id: "source", nav: "Code", title: "Your code", what: "Sampled time of each line with what it calls, in the threads of tasks. The colors are classes of time.", draw: drawSource, has: (d) => d.source.files.length > 0 },
  { id: "waits", nav: "Waits", title: "Long waits", draw: drawWaits },
  { id: "servers", title: "Servers", draw: drawServers, has: (d) => d.servers.rows.length > 0 },
  { id: "completeness", title: "Completeness", what: "Work not attributable to any task, and missing data.", draw: drawCompleteness },
  { id: "metrics", nav: "Metrics", title: "All metrics", draw: drawMetrics },
];
