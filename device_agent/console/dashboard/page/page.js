// The page: shows the server's events, and whether the server still sends any.

import { attention, stateLine } from "./attention.js";
import { chart, decimal, moment } from "./charts.js";
import { devices, watchChoice } from "./devices.js";
import { age, count, h, listed, mark, nothing, show, table } from "./nodes.js";

const SILENT_MS = 15_000; // the server sends something every 5 s at least
const FIRST_ROWS = 8;
const MOST_ROWS = 60;
const MOST_CHARTS = 6;
const GAP = 20;
const PADDING = 42;

const latest = { fleet: null, history: {}, windows: null };
const received = new Set(); // the subjects of this connection: the first patch of each is whole
const body = (name) => document.getElementById(name);
let source = null;
let lastEvent = 0;
let isDue = false;

function connect() {
  source?.close();
  lastEvent = Date.now();
  source = new EventSource("events");
  for (const subject of ["fleet", "history", "windows", "alive"]) {
    source.addEventListener(subject, (event) => take(subject, event.data));
  }
  source.onopen = () => received.clear();
  source.onerror = showState;
}

function take(subject, data) {
  lastEvent = Date.now();
  if (subject !== "alive") {
    latest[subject] = merged(received.has(subject) ? latest[subject] : null, JSON.parse(data));
    received.add(subject);
  }
  render();
}

/** Return what a JSON merge patch makes of a value (RFC 7396); what is null is not there. */
function merged(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const isMap = target !== null && typeof target === "object" && !Array.isArray(target);
  const made = isMap ? target : Object.create(null); // a name may be that of a prototype's method
  for (const [name, each] of Object.entries(patch)) {
    if (each === null) delete made[name];
    else made[name] = merged(made[name] ?? null, each);
  }
  return made;
}

/** Whether the server is there: the browser connects again by itself, but not after an error. */
function watchOver() {
  const silent = Date.now() - lastEvent > SILENT_MS;
  if (silent || source.readyState === EventSource.CLOSED) connect();
  showState();
}

/** Show the state at once, and all else before the browser draws next, once for many events. */
function render() {
  showState();
  if (!latest.fleet || isDue) return;
  isDue = true;
  requestAnimationFrame(draw);
}

function showState() {
  const { fleet } = latest;
  const lost = source.readyState !== EventSource.OPEN;
  document.body.dataset.stale = String(lost || !(fleet?.broker.connected ?? true));
  const [state, words] = stateLine(fleet, lost);
  document.body.dataset.state = state;
  body("state").dataset.state = state;
  show(body("state"), words);
  const name = fleet ? `${fleet.fleet} · lasp-edge` : "lasp-edge";
  document.title = ["bad", "warn", "lost"].includes(state) ? `${words} · ${name}` : name;
}

function draw() {
  isDue = false;
  const { fleet } = latest;
  show(body("fleet"), fleet.fleet);
  show(body("broker"), `at ${fleet.broker.url}`);
  show(body("attention-body"), attention(fleet));
  show(body("values-body"), values(fleet));
  show(body("devices-body"), devices(fleet));
  show(body("windows-body"), windows(latest.windows));
  show(body("bytes-body"), bytes(fleet.bytes));
  show(body("about"), `lasp-edge ${fleet.release}. Everything on this page comes from its server; ` +
    "times are those of this browser.");
}

function values(fleet) {
  const all = Object.entries(fleet.values);
  if (all.length === 0) {
    return nothing("No values yet: name the program (", h("code", {},
      "lasp-edge dashboard MODULE:PROGRAM …"), "), or start agents with ",
    h("code", {}, "--results 60"), ".");
  }
  return all.map(([name, value]) => h("article", { class: "card", key: name },
    h("h3", {}, name),
    h("p", { class: "agreement" }, agreement(value, fleet)),
    value.keyed ? keyed(name, value, all.length) : whole(name, value, all.length)));
}

/** Values move while devices measure: only a device that stays behind is something to look at. */
function agreement(value, fleet) {
  const over = value.devices === undefined ? "" : ` over ${count(value.devices, "device")}`;
  const [is, last] = value.away.length === 1 ? ["is", "its last value counts"]
    : ["are", "their last values count"];
  return [
    settled(value, fleet), over,
    value.away.length > 0 && [`${over && ", of which"} ${listed(value.away)} ${is} `,
      mark("bad", "away"), `: ${last}`],
    value.slow.length > 0 && ["; ", mark("soft", "far behind"), ` ${listed(value.slow)}`],
  ];
}

function settled(value, fleet) {
  if (fleet.connected === 0) return mark("calm", "as last reported");
  if (value.settled) return mark("good", "settled");
  if (value.agreed !== undefined) return mark("calm", `settled ${age(fleet.at - value.agreed)} ago`);
  return mark("calm", value.settled === undefined ? "unknown"
    : `not settled in the last ${age(fleet.at - fleet.began)}`);
}

function whole(name, value, cards) {
  return [
    value.parts.length === 0 ? nothing("No value yet.") : h("dl", { class: "parts" },
      value.parts.map((part) => h("div", { key: part.part },
        h("dt", { class: value.parts.length === 1 ? "unseen" : null }, part.title),
        h("dd", {}, part.text, value.unit && h("span", { class: "unit" }, ` ${value.unit}`))))),
    charts(name, value, cards),
  ];
}

/** The width of one of `count` columns, each at least `least` wide, in a part of the page. */
function column(name, count, least, padding) {
  const room = body(name).clientWidth;
  const columns = Math.max(1, Math.min(count, Math.floor((room + GAP) / (least + GAP))));
  return Math.max(240, Math.round((room + GAP) / columns - GAP - padding));
}

function charts(name, value, cards) {
  const width = column("values-body", cards, 448, PADDING);
  return Object.values(latest.history)
    .filter((each) => each.value === name)
    .map((each) => chart(points(each), {
      id: JSON.stringify([each.key, each.part]),
      title: [each.key, value.parts.length > 1 || each.key ? each.part : name]
        .filter(Boolean).join(", "),
      unit: value.unit,
      places: value.places,
      settled: "settled",
      unsettled: "moving",
    }, width));
}

/** The points of a series, in the order of their times. */
function points(series) {
  return Object.entries(series.points)
    .map(([at, [value, is]]) => [Number(at), value, is])
    .sort(([one], [other]) => one - other);
}

function keyed(name, value, cards) {
  const rows = Object.entries(value.keys).map(([key, text]) => ({
    key, cells: [key || "(no key)", text],
  }));
  return [
    table(`${name}, by key`, [{ title: "key" }, { title: "value", number: true }], rows),
    value.more_keys > 0 && nothing(`and ${value.more_keys} more keys`),
    h("details", {}, h("summary", {}, "Over the last hours",
      h("span", { class: "unseen" }, `: ${name}`)), charts(name, value, cards)),
  ];
}

function windows(lake) {
  if (!lake) {
    return nothing("No gateway has published windows, and no lake was named: ",
      h("code", {}, "lasp-edge dashboard … --lake DIR"), " shows its windows.");
  }
  if (lake.trouble) return h("p", { class: "trouble" }, `The lake cannot be read: ${lake.trouble}`);
  const all = Object.entries(lake.windows);
  if (all.length === 0) return nothing(`The program in ${lake.lake} has no windows.`);
  return all.map(([name, window], at) => {
    const each = { ...window, name, rows: newestFirst(window.rows) };
    return h("article", { class: "card wide", key: name },
      h("h3", {}, name),
      each.rows.length === 0 ? nothing("No window yet.") : windowRows(each, at === 0));
  });
}

function newestFirst(rows) {
  return Object.values(rows).sort((one, other) =>
    other.start - one.start || (one.key < other.key ? -1 : 1));
}

function windowRows(each, isFirst) {
  const { rows } = each;
  const more = rows.slice(FIRST_ROWS, MOST_ROWS);
  return h("details", { open: isFirst },
    h("summary", {}, `${count(rows.length, "row")}, the last until ${moment(rows[0].end)}`,
      h("span", { class: "unseen" }, `: ${each.name}`)),
    windowCharts(each),
    windowTable(each, "newest", rows.slice(0, FIRST_ROWS)),
    more.length > 0 && h("details", {}, h("summary", {}, `The ${more.length} rows before`),
      windowTable(each, "before", more)));
}

function windowCharts(each) {
  const keys = [...new Set(each.rows.map((row) => row.key))].slice(0, MOST_CHARTS);
  const width = column("windows-body", keys.length, 384, keys.length > 1 ? PADDING / 2 : PADDING);
  return h("div", { class: "charts" }, keys.map((key) => {
    const rows = each.rows.filter((row) => row.key === key).reverse();
    const points = rows.map((row) =>
      [row.end, row.parts[0] ?? null, row.status === "tentative" ? 0 : 1]);
    return chart(points, {
      id: key,
      title: [key, each.parts[0]].filter(Boolean).join(", "),
      unit: each.units[0], places: each.places, settled: "final", unsettled: "tentative",
    }, width);
  }));
}

function windowTable(each, which, shown) {
  const columns = [
    { title: "from" }, { title: "to" }, { title: "key" },
    ...each.parts.map((part, at) =>
      ({ title: each.units[at] ? `${part} (${each.units[at]})` : part, number: true })),
    { title: "devices in", number: true }, { title: "state" },
  ];
  const kinds = { tentative: "soft", final: "good", revised: "calm" };
  const rows = shown.map((row) => ({
    key: JSON.stringify([row.start, row.key]),
    cells: [
      moment(row.start), moment(row.end), row.key || "–",
      ...row.parts.map((part) =>
        typeof part === "number" ? decimal(part, Number.isInteger(part) ? 0 : each.places) : part ?? "–"),
      row.expected === undefined ? row.in ?? "–" : `${row.in} of ${row.expected}`,
      mark(kinds[row.status] ?? "calm",
        row.status === "revised" ? `revised ${row.revision} times`
          : row.waiting_for?.length ? `${row.status}, waits for ${row.waiting_for.join(", ")}`
          : row.status),
    ],
  }));
  return table(`${each.name}, the newest first`, columns, rows,
    { class: "cards-on-phone", key: which });
}

function bytes(ledger) {
  if (ledger.why_not) return nothing(ledger.why_not);
  const most = Math.max(ledger.sent, ledger.json);
  const bar = (title, total, kind) => ({
    key: kind,
    cells: [
      title, total.toLocaleString("en"), (total / ledger.readings).toFixed(1),
      h("svg", { viewBox: "0 0 200 12", class: "bar", "aria-hidden": "true" },
        h("rect", { class: kind, width: Math.max(2, (200 * total) / most), height: 12, rx: 3 })),
    ],
  });
  const share = ledger.json / ledger.sent;
  return [
    h("p", {}, share >= 1
      ? `Each reading as JSON would take ${share.toFixed(1)} times as much.`
      : `That is ${(1 / share).toFixed(1)} times what each reading as JSON would take: few ` +
        "readings and short intervals (--interval, --results) cost most a reading.",
    ` Counted over ${ledger.readings.toLocaleString("en")} readings of ` +
      `${count(ledger.devices, "device")} since this page was first served.`),
    table("What these devices sent", [
      { title: "" }, { title: "bytes", number: true }, { title: "a reading", number: true },
      { title: "beside each other" },
    ], [bar("sent by lasp-edge", ledger.sent, "ours"), bar("each reading as JSON", ledger.json,
      "json")], { class: "cards-on-phone" }),
    nothing("Sent bytes are those of the agents' sockets, with all that MQTT and TLS add. A reading " +
      "as JSON is one MQTT message with time and value, as short as it can be."),
  ];
}

watchChoice(render);
connect();
setInterval(watchOver, 1_000);
