/* SPDX-License-Identifier: BSD-3-Clause */
/* The page: theme, sections, redrawing, and the live mode that requests data.json next to it. */

const POLL_MS = 2000;
const POLL_MOST_MS = 30000;

function byId(id) {
  return document.getElementById(id);
}

/* --- theme; a page from a file, or in a strict browser, may have no storage */

function storedTheme() {
  try {
    return localStorage.getItem("crema-theme");
  } catch (_) {
    return null;
  }
}

function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const input of document.querySelectorAll("input[name=theme]")) input.checked = input.value === (theme || "auto");
  try {
    localStorage.setItem("crema-theme", theme || "auto");
  } catch (_) { /* then it is kept as long as the page */ }
}

for (const input of document.querySelectorAll("input[name=theme]")) input.addEventListener("change", () => setTheme(input.value));
setTheme(storedTheme());

/* --- sections */

/* A colour of page.css by its name; names without one share a colour. */
function coloured(items = []) {
  const style = getComputedStyle(document.documentElement);
  return items.map((item) => ({ ...item, colour: style.getPropertyValue(`--${item.id}`) ? item.id : "s5" }));
}

function prepare(d) {
  d.classes = coloured(d.classes);
  d.layers = coloured(d.layers);
  d.byId = new Map(d.metrics.map((m) => [m.id, m]));
  d.wall = known(d.run.start) && known(d.run.stop) ? d.run.stop - d.run.start : 0;
  return d;
}

function panelNode(panel) {
  const id = `panel-${panel.id}`;
  let node = byId(id);
  if (!node) {
    node = panel.title ? h("section", { id, class: panel.half ? "panel half" : "panel", "aria-labelledby": `title-${panel.id}`, tabindex: -1 })
      : h("section", { id, class: "answers", "aria-label": "In short" });
    byId("main").append(node);
  }
  return node;
}

/* Keeps open tables, the focus and scroll positions of tables. */
function drawPanel(panel, d) {
  const node = panelNode(panel);
  const open = [...node.querySelectorAll("details[open]")].map((e) => e.id);
  const scrolled = [...node.querySelectorAll("details[open] > .scroll")].map((e) => [e.parentNode.id, e.scrollTop, e.scrollLeft]);
  const active = node.contains(document.activeElement) ? document.activeElement : null;
  const focus = active && (active.id || (active.tagName === "SUMMARY" && `${active.parentNode.id}>summary`));
  node.replaceChildren();
  if (panel.title) node.append(h("h2", { id: `title-${panel.id}` }, panel.title));
  if (panel.what) node.append(h("p", { class: "what" }, panel.what));
  panel.draw(node, d);
  for (const id of open) if (byId(id)) byId(id).open = true;
  for (const id of open) if (byId(id)) byId(id).dispatchEvent(new Event("toggle"));
  for (const [id, top, left] of scrolled) {
    const box = byId(id) && byId(id).querySelector(".scroll");
    if (box) [box.scrollTop, box.scrollLeft] = [top, left];
  }
  if (focus) {
    const target = focus.endsWith(">summary") ? byId(focus.slice(0, -8)).firstChild : byId(focus);
    if (target) target.focus({ preventScroll: true });
  }
}

function drawHead(d) {
  const r = d.run;
  byId("run").textContent = r.name ? `${r.name}: run ${r.id}` : `run ${r.id}`;
  document.title = `crema: ${r.name || r.id}`;
  const began = r.start_time ? `began ${r.start_time.slice(0, 19).replace("T", " ")} UTC` : "began at an unknown time";
  const versions = [["Python", r.python], ["Dask", r.dask], ["coffea", r.coffea], ["uproot", r.uproot]].filter((v) => v[1]).map((v) => v.join(" "));
  byId("facts").textContent = [began, r.running ? `${groups(r.running)} tasks still running` : null, ...versions, ...r.company].filter(Boolean).join(" \u00b7 ");
  byId("outcome").textContent = r.state_text;
  byId("outcome").className = `outcome ${r.state}`;
  byId("outcome").hidden = !r.state_text;
  byId("made").textContent = `Written by crema ${d.version}. A number that is unknown is shown as unknown, never as 0. The meaning of each metric is under \u201cAll metrics\u201d.`;
}

function drawNav(panels) {
  const nav = byId("nav");
  nav.replaceChildren(h("ul", {}, panels.filter((p) => p.title).map((p) => h("li", {}, h("a", { href: `#panel-${p.id}` }, p.nav || p.title)))));
  nav.hidden = false;
}

let current = null; // the data on the screen
let navShown = "";

function draw(d) {
  current = d;
  const panels = PANELS.filter((p) => !p.has || p.has(d));
  document.querySelectorAll("main > .state").forEach((e) => e.remove());
  drawHead(d);
  const ids = panels.map((p) => p.id).join();
  if (ids !== navShown) {
    drawNav(panels);
    byId("main").replaceChildren();
    navShown = ids;
  }
  panels.forEach((p) => drawPanel(p, d));
}

let drawnWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (!current || window.innerWidth === drawnWidth) return;
  drawnWidth = window.innerWidth;
  draw(current);
});

/* --- live */

function say(...lines) {
  navShown = "";
  byId("nav").hidden = true;
  byId("main").replaceChildren(...lines.map((text) => h("p", { class: "state", role: "status" }, text)));
}

const live = { paused: false, timer: null, failures: 0 };

function drawLive(failure) {
  const box = byId("live");
  box.hidden = false;
  if (!box.children.length) {
    const button = h("button", { type: "button", id: "pause" }, "Pause");
    button.addEventListener("click", () => {
      live.paused = !live.paused;
      button.textContent = live.paused ? "Resume" : "Pause";
      if (live.paused) clearTimeout(live.timer);
      else poll();
    });
    const runs = h("details", { id: "runs" }, h("summary", {}, "All runs"));
    runs.addEventListener("toggle", () => { if (runs.open) listRuns(runs); });
    box.append(h("div", { class: "row" }, h("progress", { id: "live-bar", "aria-label": "Done", hidden: true }), h("span", { id: "live-text" }), button, h("span", { id: "links" })),
      h("p", { id: "live-journal", class: "facts stale", role: "alert" }),
      h("p", { id: "live-state", class: "facts stale", role: "status" }), h("div", { id: "stuck", hidden: true }), runs);
  }
  const text = failure ? `Not up to date: ${failure}. Trying again.` : "";
  if (byId("live-state").textContent !== text) byId("live-state").textContent = text;
}

/* The same run in other forms, relative because this page's address may be a proxy's. */
function drawLinks(id) {
  const run = `?run=${encodeURIComponent(id)}`;
  const links = [["this run", run], ["as text", `report.txt${run}`], ["as JSON", `report.json${run}`], ["metrics", "metrics"]];
  byId("links").replaceChildren(...links.flatMap(([name, href]) => [h("a", { href }, name), " "]));
}

/* Requested when it is opened: the list reads the whole journal. */
async function listRuns(box) {
  const fill = (node) => box.replaceChildren(box.firstChild, node);
  fill(h("p", { class: "what", role: "status" }, "Loading the list of runs \u2026"));
  try {
    const { runs } = await ask("runs.json");
    fill(table("table-runs", `${groups(runs.length)} runs, latest first`, [["run", (r) => h("a", { href: `?run=${encodeURIComponent(r.run)}` }, r.run), "link"],
      ...(runs.some((r) => r.name) ? [["name", (r) => r.name || ""]] : []), ["kind", (r) => r.kind],
      ["wall", (r) => r.wall_time, as.seconds], ["tasks", (r) => r.num_tasks, as.count], ["chunks", (r) => r.num_chunks, as.count], ["events", (r) => r.total_events, as.count],
      ["running", (r) => r.running_attempts, as.count]], [...runs].reverse()));
  } catch (error) {
    fill(h("p", { class: "what", role: "status" }, `The list is not available: ${error.message}.`));
  }
}

/* The cluster's state from live.json; a bar only if the scheduler reports the total work. */
function drawProgress(now) {
  const t = now.tasks, r = now.rates, busy = now.activity.since !== null;
  const words = [now.progress ? now.progress.text : `idle; ${as.count(t.done)} tasks done`,
    `${as.count(t.running)} running on ${as.count(now.workers.connected)} workers`];
  if (busy) {
    words.push(`${as.number(r.events_per_second)} events/s`,
      `read ${as.gbps(known(r.bytes_per_second.read) ? r.bytes_per_second.read * 8e-9 : null)}`);
  }
  if (now.state && now.state.text) words.unshift(now.state.text);
  const bar = byId("live-bar"), total = now.progress && now.progress.total;
  bar.hidden = !total;
  if (total) [bar.max, bar.value] = [total, now.progress.done];
  byId("live-text").textContent = words.join(" \u00b7 ");
  const trouble = now.journal_error ? `The collector cannot write its journal (${now.journal_error}): it accepts no records, and the workers\u2019 agents keep them until it can.` : now.journals_trouble || now.journal_over || "";
  if (byId("live-journal").textContent !== trouble) byId("live-journal").textContent = trouble;
}

/* What hangs: paused workers, and tasks that have been in one call for two seconds, as in crema stuck. */
function drawStuck(now) {
  const tasks = (now.doing || []).filter((r) => known(r.seconds) && r.seconds >= 2), paused = (now.worker_rows || []).filter((r) => r.paused);
  const rows = [...paused.map((r) => ({ ...r, what: "paused by Dask", on: known(r.limit_bytes) ? `at ${Math.round(r.rss_bytes / r.limit_bytes * 100)} % of its memory limit` : "" })),
    ...tasks.map((r) => ({ ...r, what: r.call, on: [r.kind, r.object].filter(Boolean).join(" ") }))];
  const box = byId("stuck");
  box.hidden = !rows.length;
  box.replaceChildren(rows.length ? table("table-stuck", `Stuck now: ${groups(rows.length)}`, [["task", (r) => (r.paused ? "\u2013" : r.key)], ["worker", (r) => r.name || r.worker || `${r.host}, pid ${r.pid}`],
    ["in", (r) => r.what], ["on", (r) => r.on], ["for", (r) => r.seconds, as.seconds], ["line", (r) => (r.paused ? "\u2013" : r.line)],
    ["through", (r) => (r.paused ? "\u2013" : r.through && r.through.join(", "))]], rows) : "");
}

async function ask(name) {
  const answer = await fetch(name, { cache: "no-store", credentials: "same-origin" });
  if (answer.ok) return answer.json();
  const error = new Error((await answer.text()).trim().slice(0, 300) || `status ${answer.status}`);
  error.missing = answer.status === 404;
  throw error;
}

async function poll() {
  const began = performance.now();
  clearTimeout(live.timer);
  try {
    drawLive();
    const now = await ask("live.json");
    drawProgress(now);
    drawStuck(now);
    draw(prepare(await ask(`data.json${location.search}`)));
    drawLinks(current.run.id);
    live.failures = 0;
    drawLive(null);
  } catch (error) {
    live.failures++;
    if (error.missing && !current) say(`${error.message} \u2013 the first tasks are shown as soon as they arrive.`, "For the workers: crema run -- python analysis.py, or crema run -- dask worker SCHEDULER");
    else if (current) drawLive(error.message);
    else say(`Not up to date: ${error.message}. Trying again.`);
    if (error.missing) live.failures = 0;
  }
  /* fewer updates of a run that takes long to read */
  const wait = Math.min(POLL_MOST_MS, Math.max(POLL_MS, 4 * (performance.now() - began), POLL_MS * live.failures));
  if (!live.paused) live.timer = setTimeout(poll, wait);
}

const given = JSON.parse(byId("data").textContent);
if (given.live) {
  say("Loading the run \u2026");
  poll();
} else if (given.compare) {
  drawComparison(given);
} else {
  draw(prepare(given));
}
