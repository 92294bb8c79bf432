// A line over time: whole where it was settled, dashed where it was not yet, open where nothing was
// heard. Every chart has a sentence with the same content, and its points as a table.

import { h, table } from "./nodes.js";

const HEIGHT = 190;
const LEFT = 58;
const RIGHT = 14;
const TOP = 22;
const BOTTOM = 26;
const MOST_IN_TABLE = 30;
const NARROW = 460;
const DAY_S = 86_400;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit",
});

/** Return a time of day; with seconds where `span` seconds are a short time. */
export function time(at, span = 0) {
  return (span < 600 ? seconds : clock).format(new Date(at * 1000));
}

/** Return a time with its day, unless that is today. */
export function moment(at) {
  const day = new Date(at * 1000).toLocaleDateString();
  return day === new Date().toLocaleDateString() ? time(at) : `${day}, ${time(at, DAY_S)}`;
}

/** Return a number with so many decimals. */
export function decimal(value, places) {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en", {
    minimumFractionDigits: places, maximumFractionDigits: places,
  });
}

/**
 * Return a chart of points [time, value or null, settled 1, 0 or null].
 *
 * `words` names what is shown: {id, title, unit, places, settled, unsettled}; `width` is in pixels.
 */
export function chart(points, words, width) {
  const there = points.filter(([, value]) => Number.isFinite(value));
  if (there.length === 0) return null;
  const frame = framed(there, width);
  return h("figure", { class: "chart", key: words.id },
    h("svg", {
      viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": sentence(there, words),
    }, axes(frame, words.unit), lines(points, frame), end(there.at(-1), frame)),
    h("figcaption", {}, legend(there, words)),
    h("details", {},
      h("summary", {}, "As a table", h("span", { class: "unseen" }, `: ${words.title}`)),
      numbers(there, words)));
}

function framed(points, width) {
  const times = points.map(([at]) => at);
  const values = points.map(([, value]) => value);
  let low = Math.min(...values);
  let high = Math.max(...values);
  const room = (high - low) * 0.12 || Math.abs(high) * 0.02 || 1;
  low -= room;
  high += room;
  const first = Math.min(...times);
  const last = Math.max(...times, first + 10);
  const x = (at) => LEFT + ((at - first) / (last - first)) * (width - LEFT - RIGHT);
  const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  return { x, y, low, high, first, last, width };
}

/** Return two to five round numbers within the frame. */
function ticks({ low, high }) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let each = Math.ceil(low / step) * step; each <= high; each += step) found.push(each);
  return { found, places: Math.max(0, -Math.floor(Math.log10(step))) };
}

function axes(frame, unit) {
  const { found, places } = ticks(frame);
  const span = frame.last - frame.first;
  const middle = frame.first + span / 2;
  const anchors = ["start", "middle", "end"];
  return [
    unit && h("text", { class: "axis-unit", x: LEFT - 8, y: TOP, "text-anchor": "end" }, unit),
    found.map((value) => [
      h("line", {
        class: "grid", x1: LEFT, x2: frame.width - RIGHT, y1: frame.y(value), y2: frame.y(value),
      }),
      h("text", { x: LEFT - 8, y: frame.y(value) + 4, "text-anchor": "end" },
        decimal(value, places)),
    ]),
    [frame.first, middle, frame.last].map((at, index) => (index !== 1 || frame.width > NARROW) &&
      h("text", { x: frame.x(at), y: HEIGHT - 6, "text-anchor": anchors[index] },
        time(at, span))),
  ];
}

function lines(points, { x, y }) {
  let settled = "";
  let unsettled = "";
  points.slice(1).forEach(([at, value, is], index) => {
    const [before, from] = points[index];
    if (!Number.isFinite(value) || !Number.isFinite(from)) return;
    const piece = `M${x(before).toFixed(1)} ${y(from).toFixed(1)}` +
      `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    if (is === 0) unsettled += piece;
    else settled += piece;
  });
  return [
    h("path", { class: "line", d: settled || "M0 0" }),
    h("path", { class: "line unsettled", d: unsettled || "M0 0" }),
  ];
}

function end([at, value, is], { x, y }) {
  return h("circle", {
    class: is === 0 ? "end unsettled" : "end", cx: x(at).toFixed(1), cy: y(value).toFixed(1), r: 5,
  });
}

function sentence(points, words) {
  const values = points.map(([, value]) => value);
  const [last, now, is] = points.at(-1);
  const span = last - points[0][0];
  const shown = (value) => `${decimal(value, words.places)} ${words.unit}`.trim();
  return `${words.title}: ${shown(now)} at ${time(last, span)}` +
    `, ${is === 0 ? words.unsettled : words.settled}; since ${time(points[0][0], span)}` +
    ` between ${shown(Math.min(...values))} and ${shown(Math.max(...values))}.`;
}

function legend(points, words) {
  const key = (kind, text) =>
    h("span", { class: "key" },
      h("svg", { viewBox: "0 0 28 10", width: 28, height: 10, "aria-hidden": "true" },
        h("path", { class: `line ${kind}`, d: "M1 5L27 5" })),
      text);
  return [
    h("span", {}, words.title),
    key("", words.settled),
    points.some(([, , is]) => is === 0) && key("unsettled", words.unsettled),
  ];
}

function numbers(points, words) {
  const shown = points.slice(-MOST_IN_TABLE).reverse();
  const rows = shown.map(([at, value, is], index) => ({
    key: `${at} ${index}`,
    cells: [
      time(at, 0), decimal(value, words.places),
      is === null ? "not known" : is ? words.settled : words.unsettled,
    ],
  }));
  const head = words.unit ? `value in ${words.unit}` : "value";
  return table(`${words.title}: the last ${shown.length} of ${points.length} points`,
    [{ title: "time" }, { title: head, number: true }, { title: "state" }], rows);
}
