/* SPDX-License-Identifier: BSD-3-Clause */
/* Python stacks as an icicle: a row for each depth, cells as wide as the time, bytes or memory below them. A click enlarges, a search marks. */

const FLAME_ROW = 18;
const flame = { path: [], search: "", time: "all", by: "task" }; // kept over redraws

function flameNode(name, user, classes) {
  return { name, user, folded: [], amount: 0, samples: 0, variance: 0, held: 0, classes: classes.map(() => 0), children: new Map() };
}

/* The kind of bytes that the width shows; undefined: it shows time. */
function flameKind() {
  return flame.time.startsWith("b") ? +flame.time.slice(1) : undefined;
}

/* The kind of memory that the width shows, exactly; undefined: it shows something else. */
function flameMemory() {
  return flame.time.startsWith("m") ? +flame.time.slice(1) : undefined;
}

function flameAmount(v) {
  return (flameKind() ?? flameMemory()) === undefined ? as.seconds(v) : as.bytes(v);
}

/* The width of a stack, samples, variance: all of its time, one class of it, how long it held the interpreter lock, its bytes of a kind, or its memory. */
function flameWeight(row) {
  if (flameMemory() !== undefined) return [Math.max(0, row.memory[flameMemory()]), row.memory[flameMemory()] > 0 ? 1 : 0];
  if (flameKind() !== undefined) return row.bytes[flameKind()];
  if (flame.time === "all") return [d3.sum(row.seconds), row.samples];
  if (flame.time === "held") return [row.held_seconds, row.held_samples];
  return [row.seconds[+flame.time], row.class_samples[+flame.time]];
}

/* Half the width of the 95 % interval of sampled bytes, as in report/lines.c. */
function flameBytesError(variance, samples) {
  return samples ? Math.sqrt(variance / samples) * (1.96 * Math.sqrt(samples + 1) + 1.92) : 0;
}

/* The name of a frame without its file. */
function flameFunction(name) {
  return name.split(" ")[0];
}

/* Library frames at the start of nearly all stacks of a kind of task become one cell, next to stacks that left them earlier. */
function flameFold(node) {
  const names = [], beside = [];
  let last = node;
  for (;;) {
    const [child, ...others] = [...last.children.values()].sort((a, b) => b.amount - a.amount);
    if (!child || child.user || child.amount < 0.9 * node.amount) break;
    beside.push(...others);
    names.push(child.name);
    last = child;
  }
  if (names.length < 3) return;
  last.name = `${flameFunction(names[0])} \u2026 ${flameFunction(names[names.length - 1])} (${names.length} frames)`;
  last.folded = names;
  node.children = new Map([last, ...beside].map((c, i) => [i ? `${c.name} ${i}` : c.name, c]));
}

/* A stack's parts by the second row of the picture: [name or null, part]. */
function flameParts(s, row) {
  if (flame.by === "dataset") return [[row.dataset ?? "no dataset, or not known yet", row]];
  if (flame.by !== "worker") return [[null, row]];
  const rest = { ...row, seconds: [...row.seconds], class_samples: [...row.class_samples], bytes: row.bytes.map((v) => [...v]), memory: [...row.memory] }; // of workers without a separate part
  for (const part of row.parts) {
    part.seconds.forEach((v, i) => { rest.seconds[i] = Math.max(0, rest.seconds[i] - v); });
    part.class_samples.forEach((v, i) => { rest.class_samples[i] -= v; });
    for (const name of ["samples", "held_seconds", "held_samples"]) rest[name] = Math.max(0, rest[name] - part[name]);
    part.memory.forEach((v, i) => { rest.memory[i] = Math.max(0, rest.memory[i] - v); });
    part.bytes.forEach((v, i) => v.forEach((n, k) => { rest.bytes[i][k] = Math.max(0, rest.bytes[i][k] - n); }));
  }
  return [...row.parts.map((part) => [s.workers[part.worker], { ...row, ...part }]), ["other workers", rest]];
}

/* [name, is user code] of a stack's cells below its group, outermost first. */
function flameNames(s, row, text = (name) => name) {
  return [[`${row.prefix ?? UNKNOWN}${row.pool ? " (pool threads)" : ""}`, false], ...(row.without ? [["no stack", false]] : []),
    ...row.frames.map((i) => [text(s.frames[i].text), s.frames[i].user])];
}

/* The nodes from the root to the stack's own, created if missing. */
function flamePath(root, names, make) {
  const nodes = [root];
  for (const [name, user] of names) {
    const { children } = nodes[nodes.length - 1];
    if (!children.has(name)) children.set(name, make(name, user));
    nodes.push(children.get(name));
  }
  return nodes;
}

/* Seconds by class are in the order of `classes`. */
function flameTree(s, classes) {
  const root = flameNode("all tasks", false, classes);
  for (const [group, row] of s.rows.flatMap((r) => flameParts(s, r))) {
    const [amount, samples, variance] = flameWeight(row);
    if (!samples) continue;
    const names = [...(group === null ? [] : [[group, false]]), ...flameNames(s, row)];
    for (const node of flamePath(root, names, (name, user) => flameNode(name, user, classes))) {
      row.seconds.forEach((v, i) => { node.classes[i] += v; });
      node.amount += amount;
      node.samples += samples;
      node.variance += variance ?? 0;
      node.held += row.held_seconds;
    }
  }
  for (const child of root.children.values()) flame.by === "task" ? flameFold(child) : child.children.forEach(flameFold);
  return root;
}

/* The cells to draw, [{ node, path, x0, x1, depth }]: those below `top`, which fills the width, and those above it. */
function flameCells(root, path) {
  const cells = [], least = 1 / 100; // thinner ones deepen the picture without a readable name
  function below(node, at, x0, x1, depth) {
    cells.push({ node, path: at, x0, x1, depth });
    let x = x0;
    for (const [name, child] of [...node.children].sort((a, b) => d3.ascending(a[0], b[0]))) {
      const width = node.amount > 0 ? (x1 - x0) * child.amount / node.amount : 0;
      if (width >= least) below(child, [...at, name], x, x + width, depth + 1);
      x += width;
    }
  }
  let node = root, depth = 0;
  const at = [];
  for (const name of path) {
    if (!node.children.has(name)) break;
    cells.push({ node, path: [...at], x0: 0, x1: 1, depth: depth++ });
    node = node.children.get(name);
    at.push(name);
  }
  below(node, at, 0, 1, depth);
  return cells;
}

function flameColour(node, classes) {
  return (classes[flame.colour] || classes[d3.maxIndex(node.classes)]).colour;
}

function flameText(node, all, classes) {
  const whole = d3.sum(node.classes), bytes = flameKind() !== undefined, parts = classes.map((c, i) => [c.name, node.classes[i]]).filter(([, v]) => flame.time === "all" && v > 0.005 * whole);
  const share = node.amount / all.amount;
  if (flameMemory() !== undefined) return `${node.name}: ${flameAmount(node.amount)}, ${as.percent(share * 100)}${node.folded.map((name) => `\n${name}`).join("")}`;
  const error = bytes ? flameBytesError(node.variance, node.samples) : 1.96 * Math.sqrt(share * (1 - share) / all.samples);
  return `${node.name}: ${flameAmount(node.amount)}${bytes ? ` +- ${as.bytes(error)}, ${as.percent(share * 100)}` : `, ${as.percent(share * 100)} +- ${as.percent(error * 100)}`} (${as.count(node.samples)} samples)\n` +
    [...parts.sort((a, b) => b[1] - a[1]).map(([name, v]) => `${name} ${as.percent(100 * v / whole)}`)].join(", ") +
    (!bytes && node.held > 0 ? `\nheld the interpreter lock while others waited ${as.seconds(node.held)} for it` : "") + node.folded.map((name) => `\n${name}`).join("");
}

function flameMatches(node, word) {
  return [node.name, ...node.folded].some((name) => name.toLowerCase().includes(word));
}

/* The width below frames that match the search, each stack once. */
function flameFound(node, word) {
  if (flameMatches(node, word)) return node.amount;
  return d3.sum([...node.children.values()], (child) => flameFound(child, word));
}

/* look: the colour, opacity and text of a cell. */
function drawCells(chart, root, look, redraw) {
  const width = chartWidth(chart), cells = flameCells(root, flame.path), word = flame.search.toLowerCase();
  const svg = canvas(chart, "chart-flame", width, FLAME_ROW * (d3.max(cells, (c) => c.depth) + 1), "Sampled Python stacks, outermost frame at the top; width is time, bytes or memory");
  const cell = svg.selectAll("g").data(cells).enter().append("g").attr("class", (c) => (word && !flameMatches(c.node, word) ? "cell faint" : "cell"))
    .attr("transform", (c) => `translate(${c.x0 * width},${c.depth * FLAME_ROW})`).attr("tabindex", 0).attr("role", "button").attr("data-name", (c) => c.node.name)
    .attr("aria-label", (c) => look.text(c.node));
  cell.append("rect").attr("width", (c) => Math.max(0.5, (c.x1 - c.x0) * width - 0.5)).attr("height", FLAME_ROW - 1).attr("fill", (c) => colour(look.colour(c.node)))
    .attr("fill-opacity", (c) => look.opacity(c.node));
  cell.append("text").attr("class", "framename").attr("x", 3).attr("y", FLAME_ROW - 5).text((c) => {
    const room = Math.floor(((c.x1 - c.x0) * width - 6) / 6.2);
    return room < 3 ? "" : c.node.name.length > room ? `${c.node.name.slice(0, room - 2)}..` : c.node.name;
  });
  cell.append("title").text((c) => look.text(c.node));
  const enlarge = (c) => { flame.path = c.path; redraw(); };
  cell.on("click", function () { enlarge(this.__data__); });
  cell.on("keydown", function () { const event = d3.event || window.event; if (event && event.key === "Enter") enlarge(this.__data__); });
}

/* Each line of user code with the time sampled below it; for a stack without any: its innermost frame. */
function flameLines(s, classes) {
  const lines = new Map();
  for (const row of s.rows) {
    const own = [...row.frames].reverse(), at = own.find((i) => s.frames[i].user) ?? own[0], name = at === undefined ? "no stack" : s.frames[at].text;
    if (!lines.has(name)) lines.set(name, { name, seconds: 0, samples: 0, held: 0, classes: classes.map(() => 0) });
    const line = lines.get(name);
    row.seconds.forEach((v, i) => { line.classes[i] += v; });
    line.seconds += d3.sum(row.seconds);
    line.samples += row.samples;
    line.held += row.held_seconds;
  }
  return [...lines.values()].sort((a, b) => b.seconds - a.seconds);
}

/* What the widths can show, of any of the runs. */
function flameWidths(runs, classes) {
  const some = (amount) => runs.some((s) => d3.sum(s.rows, amount) > 0), option = (value, text) => h("option", { value }, text);
  return h("select", { id: "flame-time", "aria-label": "What the width shows" }, ...(runs.some((s) => s.samples) ? [option("all", "all time")] : []),
    ...classes.map((c, i) => option(i, `only ${c.name}`)).filter((o, i) => some((row) => row.seconds[i])),
    ...(some((row) => row.held_seconds) ? [option("held", "held the interpreter lock")] : []),
    ...runs[0].kinds.map((kind, k) => option(`b${k}`, `bytes ${kind.name}`)).filter((o, k) => some((row) => row.bytes[k][0])),
    ...runs[0].memories.map((name, k) => option(`m${k}`, `memory ${name}`)).filter((o, k) => some((row) => Math.max(0, row.memory[k]))));
}

function hasMemory(s) {
  return s.rows.some((row) => row.memory.some((v) => v > 0));
}

function memoryNote(s) {
  return `Memory: allocations of ${as.bytes(s.memory_least_bytes)} or more by tasks, exact. Kept: not freed, although the task has ended.`;
}

function drawFlame(box, d) {
  const s = d.stacks, chart = h("div", {}), found = h("span", { id: "flame-found", role: "status" });
  const search = h("input", { type: "search", id: "flame-search", placeholder: "function or file", "aria-label": "Mark frames" });
  const all = h("button", { type: "button", id: "flame-all" }, "All");
  const sums = d.classes.map((c, i) => d3.sum(s.rows, (r) => r.seconds[i]));
  const time = flameWidths([s], d.classes);
  const by = h("select", { id: "flame-by", "aria-label": "What the second row shows" }, h("option", { value: "task" }, "by kind of task"),
    ...(s.rows.some((r) => r.dataset !== null) ? [h("option", { value: "dataset" }, "by dataset")] : []), ...(s.workers.length ? [h("option", { value: "worker" },
      s.workers.length < s.sampled_workers ? `by worker (the busiest ${s.workers.length} of ${s.sampled_workers})` : "by worker")] : []));
  by.value = flame.by;
  if (!by.value) by.value = flame.by = "task";
  search.value = flame.search;
  time.value = flame.time;
  if (!time.value) time.value = flame.time = time.options[0].value; // the class disappeared in a redraw
  let root = flameTree(s, d.classes);
  function redraw() {
    flame.colour = flameMemory() !== undefined ? 0 : flameKind() === undefined ? flame.time : s.kinds[flameKind()].wait;
    chart.replaceChildren();
    drawCells(chart, root, { colour: (n) => flameColour(n, d.classes), opacity: (n) => (n.user ? 0.75 : 0.4), text: (n) => flameText(n, root, d.classes) }, redraw);
    found.textContent = flame.search ? `${as.percent(100 * flameFound(root, flame.search.toLowerCase()) / root.amount)} of ${time.selectedOptions[0].textContent.replace("all time", "the time")}` : "";
    all.disabled = !flame.path.length;
  }
  search.addEventListener("input", () => { flame.search = search.value; redraw(); });
  time.addEventListener("change", () => { flame.time = time.value; flame.path = []; root = flameTree(s, d.classes); redraw(); });
  by.addEventListener("change", () => { flame.by = by.value; flame.path = []; root = flameTree(s, d.classes); redraw(); });
  all.addEventListener("click", () => { flame.path = []; redraw(); });
  box.append(h("div", { class: "tools" }, time, by, search, all, found), legend(d.classes.filter((c, i) => sums[i] > 0).map((c) => ({ name: c.name, colour: c.colour }))), chart,
    h("p", { class: "shown" }, `${as.count(s.samples)} samples; ${as.seconds(s.seconds)} of the tasks\u2019 ${as.seconds(s.wall_seconds)}, estimated. Your own code is darker. Frames below 1 % of the width are left out until you enlarge what they are in.`));
  if (hasMemory(s)) box.append(h("p", { class: "shown" }, memoryNote(s)));
  box.append(shownOf(s.rows.length, s.total, "stacks") || "");
  box.append(folded("table-flame", "Time by line, for the stacks shown", [["line", (r) => r.name, "name"], ["samples", (r) => r.samples, as.count],
    ["time", (r) => r.seconds, as.seconds], ["of all", (r) => share(r.seconds, d3.sum(sums)), as.percent],
    ...d.classes.map((c, i) => [c.name, (r) => r.classes[i], as.seconds]), ["held GIL", (r) => r.held, as.seconds]], flameLines(s, d.classes)));
  redraw();
}

/* --- user code with a bar by time class before each line */

function sourceBar(row, classes, most) {
  const seconds = d3.sum(row.seconds), text = classes.map((c, i) => [c.name, row.seconds[i]]).filter(([, v]) => v > 0.005 * seconds)
    .map(([name, v]) => `${name} ${as.seconds(v)}`).join(", ");
  return h("span", { class: "sourcebar", title: `${text} (${as.count(row.samples)} samples)${row.held_seconds > 0 ? `; held the interpreter lock while others waited ${as.seconds(row.held_seconds)}` : ""}` },
    classes.map((c, i) => {
      const part = h("span", {});
      part.style.width = `${100 * row.seconds[i] / most}%`; // set by script: the page's policy forbids style attributes
      part.style.background = colour(c.colour);
      return part;
    }));
}

function sourceLine(row, classes, most, reads) {
  const timed = row.samples > 0, seconds = timed ? d3.sum(row.seconds) : 0, read = row.read_bytes !== undefined;
  return h("tr", { class: row.gap ? "gap" : false, "data-line": row.line }, h("td", {}, timed ? as.seconds(seconds) : ""), h("td", {}, timed ? as.percent(share(seconds, most)) : ""),
    h("td", {}, timed ? sourceBar(row, classes, most) : ""), ...(reads.asked ? [h("td", {}, read ? as.bytes(row.read_bytes) : ""), h("td", {}, read ? as.seconds(row.decompress_cpu_seconds) : "")] : []),
    ...reads.kinds.map((k) => h("td", {}, row.bytes && row.bytes[k][0] ? as.bytes(row.bytes[k][0]) : "")),
    ...reads.memories.map((k) => h("td", {}, row.memory && row.memory[k] > 0 ? as.bytes(row.memory[k]) : "")),
    ...(reads.opened ? [h("td", {}, row.opened_bytes === undefined ? "" : as.bytes(row.opened_bytes))] : []),
    h("td", { class: "number" }, row.line), h("td", {}, h("code", {}, row.text ?? `(${row.function})`)));
}

function drawSource(box, d) {
  const some = (test) => d.source.files.some((file) => file.rows.some(test)), has = (name) => some((row) => row[name] !== undefined);
  const { kinds, memories } = d.stacks, sampled = kinds.map((kind, k) => k).filter((k) => some((row) => row.bytes && row.bytes[k][0]));
  const held = memories.map((name, k) => k).filter((k) => some((row) => row.memory && row.memory[k] > 0));
  const reads = { asked: has("read_bytes"), opened: has("opened_bytes"), kinds: sampled, memories: held };
  for (const file of d.source.files) {
    const note = file.without ? `No code: the file is ${file.without}.` : file.changed ? "The file was changed after the run began: lines may have moved." : "";
    const head = ["time", "of all", "", ...(reads.asked ? ["read", "decompressing"] : []), ...sampled.map((k) => kinds[k].name), ...held.map((k) => memories[k]), ...(reads.opened ? ["opened"] : []), "line", ""].map((text) => (text ? h("th", { scope: "col" }, text) : h("td", {})));
    box.append(h("details", { class: "source", open: file === d.source.files[0] }, h("summary", {}, file.file), note ? h("p", { class: "shown" }, note) : "",
      h("div", { class: "scroll" }, h("table", {}, h("caption", {}, "Time by line"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, file.rows.map((row) => sourceLine(row, d.classes, d.source.seconds, reads))))),
      file.left_out ? h("p", { class: "shown" }, `${as.count(file.left_out)} more lines.`) : ""));
  }
  if (sampled.length) box.append(h("p", { class: "shown" }, "From files, received: estimated from samples; with what the line calls, also in other threads."));
  if (held.length) box.append(h("p", { class: "shown" }, memoryNote(d.stacks)));
  if (reads.opened) box.append(h("p", { class: "shown" }, "Opened: bytes read through the descriptors that the line opened, by whatever line and thread; exact, and not in addition to \u201cread\u201d."));
  if (reads.asked) box.append(h("p", { class: "shown" }, "Read: bytes in the files of the columns that the line asked for first, and the CPU time of decompressing them; exact, without what the lines that it calls read."));
  if (d.source.left_out) box.append(h("p", { class: "shown" }, `${as.count(d.source.left_out)} more files.`));
}
