/* SPDX-License-Identifier: BSD-3-Clause */
/* Two runs side by side: their numbers, and a flame graph of the difference. Frames are matched by function and file, as lines move when code is edited. */

const compared = { widths: 1 };

/* "process (analysis.py:42)" without its line. */
function unlined(text) {
  return text.replace(/:\d+\)$/, ")");
}

function comparedNode(name, user) {
  return { name, user, folded: [], amount: 0, of: [0, 0], samples: [0, 0], variance: [0, 0], children: new Map() };
}

/* Each run's seconds, bytes or memory are in `of`; `amount` is the width. */
function comparedTree(runs) {
  const root = comparedNode("all tasks", false);
  runs.forEach((s, k) => s.rows.forEach((row) => {
    const [amount, samples, variance] = flameWeight(row);
    if (!samples) return;
    for (const node of flamePath(root, flameNames(s, row, unlined), comparedNode)) {
      node.of[k] += amount;
      node.samples[k] += samples;
      node.variance[k] += variance ?? 0;
      if (k === compared.widths) node.amount += amount;
    }
  }));
  return root;
}

/* How much more the second run has, and half the width of the 95 % interval. */
function comparedChange(node, root) {
  const error = node.of.map((amount, k) => {
    if (flameMemory() !== undefined) return 0;
    if (flameKind() !== undefined) return flameBytesError(node.variance[k], node.samples[k]);
    const part = root.of[k] > 0 ? amount / root.of[k] : 0;
    return root.samples[k] ? 1.96 * Math.sqrt(part * (1 - part) / root.samples[k]) * root.of[k] : 0;
  });
  return [node.of[1] - node.of[0], Math.hypot(...error)];
}

function signed(x, format = as.seconds) {
  return `${x < 0 ? "-" : "+"}${format(Math.abs(x))}`;
}

function comparedLook(root) {
  const certain = (node) => {
    const [change, error] = comparedChange(node, root);
    return Math.abs(change) > error ? change : 0;
  };
  return {
    colour: (node) => (certain(node) > 0 ? "s1" : certain(node) < 0 ? "s0" : "s6"),
    opacity: (node) => (certain(node) ? 0.25 + 0.6 * Math.min(1, Math.abs(certain(node)) / Math.max(...node.of)) : 0.25),
    text: (node) => {
      const [change, error] = comparedChange(node, root);
      const said = `${node.name}: ${flameAmount(node.of[0])} and ${flameAmount(node.of[1])}, ${signed(change, flameAmount)}`;
      return flameMemory() !== undefined ? said : `${said} +- ${flameAmount(error)} (${as.count(node.samples[0])} and ${as.count(node.samples[1])} samples)`;
    },
  };
}

function drawDifference(box, d) {
  const runs = d.runs.map((r) => r.stacks), chart = h("div", {}), all = h("button", { type: "button", id: "flame-all" }, "All");
  const empty = runs.findIndex((s) => !s.samples);
  if (empty >= 0) {
    box.append(h("p", { class: "shown" }, `No samples of run ${empty + 1}: nothing to compare.`));
    return;
  }
  const widths = h("select", { id: "flame-widths", "aria-label": "Run that the width shows" }, runs.map((_, k) => h("option", { value: k }, `widths: run ${k + 1}`)));
  const time = flameWidths(runs, d.classes);
  widths.value = compared.widths;
  function redraw() {
    const root = comparedTree(runs);
    chart.replaceChildren();
    drawCells(chart, root, comparedLook(root), redraw);
    all.disabled = !flame.path.length;
  }
  widths.addEventListener("change", () => { compared.widths = +widths.value; flame.path = []; redraw(); });
  time.addEventListener("change", () => { flame.time = time.value; flame.path = []; redraw(); });
  all.addEventListener("click", () => { flame.path = []; redraw(); });
  box.append(h("div", { class: "tools" }, time, widths, all),
    legend([{ name: "run 2 took more", colour: "s1" }, { name: "run 2 took less", colour: "s0" }, { name: "no more than the error of sampling", colour: "s6" }]), chart,
    h("p", { class: "shown" }, "Seconds and bytes of the tasks, estimated from samples; memory is exact. Frames are matched by function and file. To see what only the other run has, choose its widths."));
  for (const [k, s] of runs.entries()) box.append(shownOf(s.rows.length, s.total, `stacks of run ${k + 1}`) || "");
  redraw();
}

function drawNumbers(box, d) {
  const [one, two] = d.compare.runs, text = (x) => (typeof x === "boolean" ? (x ? "yes" : "no") : typeof x === "number" ? as.number(x) : as.text(x));
  const rows = Object.keys(one).filter((id) => !["run", "directory"].includes(id) && (one[id] === null || typeof one[id] !== "object"));
  box.append(table("table-numbers", "Numbers of both runs", [["metric", (id) => id, "name"], ["run 1", (id) => text(one[id]), "number"], ["run 2", (id) => text(two[id]), "number"],
    ["run 2 / run 1", (id) => (typeof one[id] === "number" && typeof two[id] === "number" && one[id] > 0 ? two[id] / one[id] : null), as.times]], rows));
}

function drawFunctions(box, d) {
  const seconds = (k) => (f) => f.runs[k] && f.runs[k].seconds, error = (f) => Math.hypot(...f.runs.map((r) => r.error_seconds));
  const both = d.compare.functions.filter((f) => f.runs.every(Boolean));
  box.append(both.length ? table("table-functions", "Functions of your code, largest difference first", [["file", (f) => f.file, "name"], ["function", (f) => f.function, "name"],
    ["run 1", seconds(0), as.seconds], ["run 2", seconds(1), as.seconds], ["change", (f) => f.runs[1].seconds - f.runs[0].seconds, (x) => signed(x)], ["+-", error, as.seconds]], both)
    : h("p", { class: "shown" }, "No function of your own code was sampled in both runs."));
}

function drawComparison(d) {
  d.classes = coloured(d.classes);
  const [one, two] = d.compare.runs.map((r) => r.run);
  byId("run").textContent = `run 2 (${two}) beside run 1 (${one})`;
  document.title = `crema: ${two} beside ${one}`;
  byId("facts").textContent = [d.compare.refused && `no run is called best: ${d.compare.refused}`, d.compare.differs].filter(Boolean).join(" \u00b7 ");
  byId("made").textContent = `Written by crema ${d.version}. A number that is unknown is shown as unknown, never as 0.`;
  const panels = [{ id: "difference", title: "Where the time changed", draw: drawDifference }, { id: "functions", title: "Functions", draw: drawFunctions },
    { id: "numbers", title: "Numbers", draw: drawNumbers }];
  drawNav(panels);
  panels.forEach((p) => drawPanel(p, d));
  window.addEventListener("resize", () => drawPanel(panels[0], d));
}
