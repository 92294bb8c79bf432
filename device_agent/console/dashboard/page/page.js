// The page: shows the server's events, and whether the server still sends any.

import { chart, decimal, moment } from "./charts.js";
import { h, show, table } from "./nodes.js";

const SILENT_MS = 15_000; // the server sends something every 5 s at least
const FIRST_ROWS = 8;
const MOST_ROWS = 60;
const MOST_CHARTS = 6;
const GAP = 20;
const PADDING = 42;

const latest = { fleet: null, history: [], windows: null };
const body = (name) => document.getElementById(name);
let source = null;
let lastEvent = 0;

function connect() {
  source?.close();
  lastEvent = Date.now();
  source = new EventSource("events");
  for (const subject of ["fleet", "history", "windows", "alive"]) {
    source.addEventListener(subject, (event) => take(subject, event.data));
  }
  source.onerror = () => render();
}

function take(subject, data) {
  lastEvent = Date.now();
  if (subject !== "alive") latest[subject] = JSON.parse(data);
  render();
}

/** Whether the server is there: the browser connects again by itself, but not after an error. */
function watchOver() {
  const silent = Date.now() - lastEvent > SILENT_MS;
  if (silent || source.readyState === EventSource.CLOSED) connect();
  render();
}

function render() {
  const lost = source.readyState !== EventSource.OPEN;
  document.body.dataset.stale = String(lost || !(latest.fleet?.broker.connected ?? true));
  const [state, words] = stateLine(latest.fleet, lost);
  body("state").dataset.state = state;
  show(body("state"), words);
  if (!latest.fleet) return;
  const fleet = latest.fleet;
  document.title = `${fleet.fleet} · lasp-edge`;
  show(body("fleet"), fleet.fleet);
  show(body("broker"), `at ${fleet.broker.url}`);
  show(body("values-body"), values(fleet));
  show(body("devices-body"), devices(fleet));
  show(body("attention-body"), attention(fleet));
  show(body("windows-body"), windows(latest.windows));
  show(body("bytes-body"), bytes(fleet.bytes));
  show(body("about"), `lasp-edge ${fleet.release}. Everything on this page comes from this ` +
    "machine; times are those of this browser.");
}

/** The line that is read aloud when it changes: no numbers that change all the time. */
function stateLine(fleet, lost) {
  if (lost) {
    return fleet
      ? ["lost", "The dashboard's server does not answer; what is shown is old. Trying again …"]
      : ["waiting", "Connecting to the dashboard …"];
  }
  if (!fleet) return ["waiting", "Waiting for the fleet …"];
  if (!fleet.broker.connected) {
    const why = fleet.broker.trouble ? `: ${fleet.broker.trouble}` : "";
    return ["lost", `No connection to the broker${why}. What is shown is old.`];
  }
  if (fleet.broker.trouble) return ["warn", fleet.broker.trouble];
  if (fleet.count === 0) return ["warn", "No device of this fleet has sent anything; is its name right?"];
  const away = fleet.count - fleet.connected;
  const here = `${fleet.connected} of ${fleet.count} devices connected`;
  return away ? ["warn", here] : ["well", here];
}

function mark(kind, text) {
  return h("span", { class: `mark ${kind}` }, text);
}

function nothing(...words) {
  return h("p", { class: "quiet" }, words);
}

function values(fleet) {
  if (fleet.values.length === 0) {
    return nothing("No values yet: name the program (", h("code", {},
      "lasp-edge dashboard MODULE:PROGRAM …"), "), or start agents with ",
    h("code", {}, "--results 60"), ".");
  }
  return fleet.values.map((value) => h("article", { class: "card", key: value.name },
    h("h3", {}, value.name),
    h("p", { class: "agreement" }, agreement(value)),
    value.keyed ? keyed(value, fleet.values.length) : whole(value, fleet.values.length)));
}

function agreement(value) {
  const over = value.devices === null ? "" : ` over ${count(value.devices, "device")}`;
  if (value.settled === null) return [mark("calm", "unknown"), over];
  return value.settled
    ? [mark("good", "settled"), over]
    : [mark("soft", "not settled yet"), over];
}

function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

function whole(value, cards) {
  return [
    value.parts.length === 0 ? nothing("No value yet.") : h("dl", { class: "parts" },
      value.parts.map((part) => h("div", { key: part.part },
        h("dt", { class: value.parts.length === 1 ? "unseen" : null }, part.title),
        h("dd", {}, part.text, value.unit && h("span", { class: "unit" }, ` ${value.unit}`))))),
    charts(value, cards),
  ];
}

/** The width of one of `count` columns, each at least `least` wide, in a part of the page. */
function column(name, count, least, padding) {
  const room = body(name).clientWidth;
  const columns = Math.max(1, Math.min(count, Math.floor((room + GAP) / (least + GAP))));
  return Math.max(240, Math.round((room + GAP) / columns - GAP - padding));
}

function charts(value, cards) {
  const series = latest.history.filter((each) => each.value === value.name);
  const width = column("values-body", cards, 448, PADDING);
  return series
    .slice(0, MOST_CHARTS)
    .map((each) => chart(each.points, {
      id: JSON.stringify([each.key, each.part]),
      title: [each.key, value.parts.length > 1 || each.key ? each.part : value.name]
        .filter(Boolean).join(", "),
      unit: value.unit,
      places: value.places,
      settled: "settled",
      unsettled: "not settled yet",
    }, width));
}

function keyed(value, cards) {
  const rows = value.keys.map((each) => ({
    key: each.key, cells: [each.key || "(no key)", each.text],
  }));
  return [
    table(`${value.name}, by key`, [{ title: "key" }, { title: "value", number: true }], rows),
    value.more_keys > 0 && nothing(`and ${value.more_keys} more keys`),
    h("details", {}, h("summary", {}, "Over the last hours",
      h("span", { class: "unseen" }, `: ${value.name}`)), charts(value, cards)),
  ];
}

function devices(fleet) {
  if (fleet.devices.length === 0) return nothing("No device has sent anything yet.");
  const columns = [
    { title: "device" }, { title: "state" }, { title: "agrees" },
    { title: "readings", number: true }, { title: fleet.own ?? "own value", number: true },
    { title: fleet.shared ? `${fleet.shared}, here` : "fleet's value", number: true },
    { title: "last message", number: true },
  ];
  const rows = fleet.devices.map((each) => ({
    key: each.device,
    cells: [
      each.device,
      each.connected ? mark("good", "connected") : mark("bad", "away"),
      lag(each.agreed),
      each.readings === null ? "–" : each.readings.toLocaleString("en"),
      each.own, each.fleet,
      each.heard_s === null ? "–" : `${age(each.heard_s)} ago`,
    ],
  }));
  const more = fleet.count - fleet.devices.length;
  return [
    table("The values of each device, and how far it is behind the others", columns, rows,
      { class: "cards-on-phone" }),
    more > 0 && nothing(`and ${more} more devices`),
  ];
}

function lag(agreed) {
  const kind = { yes: "good", newest: "good", alone: "calm", away: "calm", "-": "calm" }[agreed];
  return mark(kind ?? "soft", agreed === "-" ? "unknown" : agreed);
}

function age(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

function attention(fleet) {
  const alarms = fleet.devices.flatMap((each) =>
    each.alarms.map((alarm, at) => ({ key: JSON.stringify([each.device, at]), cells: [each.device, alarm] })));
  const alerts = alertRows(fleet.alerts);
  const refused = fleet.devices.flatMap((each) =>
    Object.entries(each.refused_because).map(([reason, total]) => ({
      key: JSON.stringify([each.device, reason]),
      cells: [each.device, reason, total.toLocaleString("en")],
    })));
  const parts = [
    alerts.length > 0 && table("Alerts of the program",
      [{ title: "alert" }, { title: "state" }, { title: "on at" }, { title: "value" },
        { title: "since" }], alerts, { class: "cards-on-phone", key: "alerts" }),
    alarms.length > 0 && table("What somebody should look at",
      [{ title: "device" }, { title: "alarm" }], alarms, { class: "cards-on-phone", key: "alarms" }),
    refused.length > 0 && table("Readings that were refused since an agent's start, by reason",
      [{ title: "device" }, { title: "reason" }, { title: "readings", number: true }], refused,
      { class: "cards-on-phone", key: "refused" }),
  ].filter(Boolean);
  if (parts.length > 0) return parts;
  return fleet.reporting > 0
    ? nothing("Nothing: no alert, no alarm, no reading refused, as far as agents report.")
    : nothing("No agent reports how it does. Agents that publish results do: start them with ",
      h("code", {}, "--results 60"), " or ", h("code", {}, "--home-assistant"), ".");
}

/** Each alert and key once: a device that reports it as on counts before the others. */
function alertRows(alerts) {
  const groups = new Map();
  for (const each of alerts) {
    const key = JSON.stringify([each.name, each.key]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups].map(([key, all]) => {
    const on = all.filter((each) => each.state === "on");
    const [first] = on.length > 0 ? on : all;
    const value = typeof first.value === "number" ? Number(first.value.toPrecision(6)) : "–";
    return {
      key,
      cells: [
        [first.name, first.key].filter(Boolean).join(", "),
        on.length > 0 ? mark("bad", "on") : mark("good", "off"),
        on.length > 0 ? `${on.length} of ${count(all.length, "device")}` : "–",
        [first.fold, first.part, "was", value].filter(Boolean).join(" "),
        first.since ? new Date(first.since).toLocaleString() : "–",
      ],
    };
  });
}

function windows(lake) {
  if (!lake) {
    return nothing("No gateway has published windows, and no lake was named: ",
      h("code", {}, "lasp-edge dashboard … --lake DIR"), " shows its windows.");
  }
  if (lake.trouble) return h("p", { class: "trouble" }, `The lake cannot be read: ${lake.trouble}`);
  if (lake.windows.length === 0) return nothing(`The program in ${lake.lake} has no windows.`);
  return lake.windows.map((each, at) => h("article", { class: "card wide", key: each.name },
    h("h3", {}, each.name),
    each.rows.length === 0 ? nothing("No window yet.") : windowRows(each, at === 0)));
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
      unit: "", places: 2, settled: "final", unsettled: "tentative",
    }, width);
  }));
}

function windowTable(each, which, shown) {
  const columns = [
    { title: "from" }, { title: "to" }, { title: "key" },
    ...each.parts.map((part) => ({ title: part, number: true })),
    { title: "devices in", number: true }, { title: "state" },
  ];
  const kinds = { tentative: "soft", final: "good", revised: "calm" };
  const rows = shown.map((row) => ({
    key: JSON.stringify([row.start, row.key]),
    cells: [
      moment(row.start), moment(row.end), row.key || "–",
      ...row.parts.map((part) =>
        typeof part === "number" ? decimal(part, Number.isInteger(part) ? 0 : 2) : part ?? "–"),
      row.expected === null ? row.in : `${row.in} of ${row.expected}`,
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

connect();
setInterval(watchOver, 1_000);
