/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables. A column is [title, value of a row, format]: a format that is a function converts a number to text,
 * "name" is a text that may be long, "link" an element, no format a short text. A click on a title sorts by the values, not by
 * their texts; unknown values come last in both directions. The order is kept over redraws.
 */

const orders = new Map(); // by the table's id: [column, 1 or -1]

function isNumber(format) {
  return typeof format === "function";
}

function plain(value) {
  return value instanceof Element ? value.textContent : String(value);
}

function sorted(rows, columns, [column, way]) {
  const [, value, format] = columns[column];
  const numbers = isNumber(format);
  const there = (v) => (numbers ? known(v) : v !== null && v !== undefined && v !== "");
  const compare = (a, b) => (numbers ? Number(a) - Number(b) : plain(a).localeCompare(plain(b), "en", { numeric: true }));
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return there(x) && there(y) ? way * compare(x, y) : there(y) - there(x);
  });
}

function bodyRows(columns, rows) {
  return rows.map((row) => h("tr", {}, columns.map(([, value, format], i) => {
    const text = isNumber(format) ? format(value(row)) : format === "link" ? value(row) : as.text(value(row)), kind = isNumber(format) ? "number" : format;
    return i ? h("td", { class: kind }, shown(text)) : h("th", { scope: "row", class: kind }, shown(text));
  })));
}

function table(id, caption, columns, rows) {
  const body = h("tbody", {});
  const heads = columns.map(([title, , format], i) => {
    if (!title) return h("td", {}); // above the names of the rows
    const kind = isNumber(format) ? "number" : format;
    const button = h("button", { type: "button", class: "sort", id: `${id}-by-${i}` }, title);
    button.addEventListener("click", () => {
      const [column, way] = orders.get(id) || [];
      orders.set(id, [i, column === i ? -way : isNumber(format) ? -1 : 1]);
      fill();
    });
    return h("th", { scope: "col", class: kind }, button);
  });
  function fill() {
    const order = orders.get(id);
    heads.forEach((head, i) => {
      if (order && order[0] === i) head.setAttribute("aria-sort", order[1] < 0 ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...bodyRows(columns, order ? sorted(rows, columns, order) : rows));
  }
  fill();
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body));
}

/* A table is created when it is opened: a page may have many long ones. */
function folded(id, caption, columns, rows, summary) {
  const box = h("details", { id }, h("summary", {}, summary || "Table"));
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1) box.append(table(`${id}-rows`, caption, columns, rows));
  });
  return box;
}
