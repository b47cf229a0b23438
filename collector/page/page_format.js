"use strict";
/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for people: four significant digits, powers of 1000, unknown as a word. */

const UNKNOWN = "unknown";

function known(x) {
  return x !== null && x !== undefined && Number.isFinite(Number(x));
}

function groups(x) {
  return Math.round(x).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function short(x) {
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size >= 99999.5) return groups(x);
  if (size < 0.0995) return Number(x.toPrecision(2)).toString();
  return x.toFixed(size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

function scaled(x, units, step) {
  let i = 0;
  while (Math.abs(x) >= step * 0.99995 && i + 1 < units.length) {
    x /= step;
    i++;
  }
  return i ? `${short(x)} ${units[i]}` : `${Number.isInteger(x) ? groups(x) : short(x)} ${units[0]}`;
}

const as = {
  count: (x) => (known(x) ? groups(Number(x)) : UNKNOWN),
  number: (x) => (known(x) ? short(Number(x)) : UNKNOWN),
  bytes: (x) => (known(x) ? scaled(Number(x), ["B", "kB", "MB", "GB", "TB", "PB"], 1000) : UNKNOWN),
  rate: (x) => (known(x) ? `${short(x / 1e6)} MB/s` : UNKNOWN),
  gbps: (x) => (known(x) ? `${short(Number(x))} Gbit/s` : UNKNOWN),
  times: (x) => (known(x) ? `${Number(x).toFixed(2)}x` : UNKNOWN),
  percent: (x) => (known(x) ? `${Number(x).toFixed(1).replace(/^-0\.0$/, "0.0")} %` : UNKNOWN),
  seconds(x) {
    if (!known(x)) return UNKNOWN;
    const size = Math.abs(x);
    if (size >= 3599.5) return `${Math.trunc(x / 3600)} h ${String(Math.floor((size % 3600) / 60)).padStart(2, "0")} m`;
    if (size >= 119.95) return `${Math.trunc(x / 60)} m ${(size % 60).toFixed(1).padStart(4, "0")} s`;
    if (size >= 0.9995) return `${short(Number(x))} s`;
    if (size >= 0.9995e-3) return `${short(x * 1e3)} ms`;
    return size > 0 ? `${short(x * 1e6)} us` : "0 s";
  },
  hz: (x) => (known(x) ? scaled(Number(x), ["Hz", "kHz", "MHz", "GHz"], 1000) : UNKNOWN),
  text: (x) => (x === null || x === undefined || x === "" ? UNKNOWN : String(x)),
};

/* The same on an axis, without trailing zeros. */
function onAxis(text) {
  return (x) => text(x).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

/* Seconds from the data's microseconds. */
function ofMicro(x) {
  return known(x) ? x / 1e6 : null;
}

function share(part, whole) {
  return known(part) && known(whole) && whole > 0 ? (part / whole) * 100 : null;
}

/* An element; children are elements or become text. HTML is never parsed. */
function h(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) e.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) e.append(child);
  }
  return e;
}

/* A number's text, marked if it is unknown. */
function shown(text) {
  return text === UNKNOWN ? h("span", { class: "unknown" }, text) : text;
}

function shownOf(n, total, what) {
  return n < total ? h("p", { class: "shown" }, `shown ${groups(n)} of ${groups(total)} ${what}`) : null;
}
