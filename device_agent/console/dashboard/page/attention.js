// What somebody should look at: it stands first, and gives the header its colour and its words.

import { decimal } from "./charts.js";
import { age, count, h, listed, nothing, table } from "./nodes.js";

const MOST_ROWS = 8;
const PHONE = { class: "cards-on-phone" };

/** Return what is wrong in a fleet: alerts that are on, alarms by device, who is away or waits. */
export function troubles(fleet) {
  const alerts = grouped(fleet.alerts).filter((each) => each.on.length > 0);
  const all = Object.entries(fleet.devices);
  const alarms = all.flatMap(([name, each]) =>
    (each.alarms ?? []).map((alarm) => ({ name, alarm })));
  const away = all.filter(([, each]) => !each.connected).map(([name]) => name);
  const gateways = Object.entries(fleet.gateways ?? {}).filter(([, words]) => words.length > 0);
  return { alerts, alarms, away, gateways };
}

/** Return the header's colour and its sentence, which is read aloud: no numbers that always change. */
export function stateLine(fleet, lost) {
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
  const { alerts, alarms, away } = troubles(fleet);
  const here = `${fleet.connected} of ${fleet.count} devices connected`;
  const sentences = [
    alerts.length > 0 && `Alert: ${listed(alerts.map((each) => each.title))}`,
    alarms.length > 0 && `Alarm: ${listed([...new Set(alarms.map((each) => each.name))])}`,
    away.length > 0 && `Away: ${listed(away)}`,
    here,
  ].filter(Boolean);
  const state = alerts.length + alarms.length > 0 ? "bad" : away.length > 0 ? "warn" : "well";
  return [state, sentences.join(" · ")];
}

/** Return the section, whose first lines are what is wrong now. */
export function attention(fleet) {
  const { alerts, alarms, away, gateways } = troubles(fleet);
  const off = grouped(fleet.alerts).filter((each) => each.on.length === 0);
  const refused = Object.entries(fleet.devices).flatMap(([name, each]) =>
    Object.entries(each.refused_because ?? {}).map(([reason, total]) => ({ name, reason, total })));
  const columns = [{ title: "alert" }, { title: "on at" }, { title: "value" }, { title: "since" }];
  const now = [
    ...long("alerts", "Alerts that are on", columns, alerts.map((each) => alertRow(each, fleet))),
    ...long("alarms", "What somebody should look at", [{ title: "device" }, { title: "alarm" }],
      alarms.map(({ name, alarm }) => ({ key: JSON.stringify([name, alarm]), cells: [name, alarm] }))),
    ...long("away", "Devices that are away", [{ title: "device" }, { title: "last message" }],
      away.map((name) => ({ key: name, cells: [name, lastMessage(fleet, name)] }))),
    ...long("gateways", "Gateways that wait", [{ title: "gateway" }, { title: "for what" }],
      gateways.map(([name, words]) => ({ key: name, cells: [name, words.join(", ")] }))),
  ];
  const more = [
    off.length > 0 && folded("off", `${count(off.length, "alert")} off`,
      table("Alerts that are off", columns, off.map((each) => alertRow(each, fleet)), PHONE)),
    refused.length > 0 && folded("refused", `${refusedTotal(refused)} refused since the agents' start`,
      table("Readings that were refused, by reason",
        [{ title: "device" }, { title: "reason" }, { title: "readings", number: true }],
        refused.map(({ name, reason, total }) => ({
          key: JSON.stringify([name, reason]), cells: [name, reason, total.toLocaleString("en")],
        })), PHONE)),
    fleet.more_alerts > 0 && nothing(`and ${fleet.more_alerts} more alerts that are not shown`),
  ].filter(Boolean);
  if (now.length > 0) return [...now, ...more];
  return [fleet.reporting > 0
    ? nothing("Nothing: nobody is away, no alert is on, no alarm, as far as agents report.")
    : nothing("Nobody is away. No agent reports how it does; agents that publish results do: start " +
      "them with ", h("code", {}, "--results 60"), " or ", h("code", {}, "--home-assistant"), "."),
  ...more];
}

function refusedTotal(refused) {
  return count(refused.reduce((sum, each) => sum + each.total, 0), "reading");
}

function lastMessage(fleet, name) {
  const { last } = fleet.devices[name];
  return last === undefined ? "before this page was first served" : `${age(fleet.at - last)} ago`;
}

/** A table of the first rows, and the others folded: a phone shows all kinds on its first screen. */
function long(key, title, columns, rows) {
  if (rows.length === 0) return [];
  const others = rows.slice(MOST_ROWS);
  return [
    table(title, columns, rows.slice(0, MOST_ROWS), { class: "cards-on-phone urgent", key }),
    ...(others.length > 0 ? [folded(`more ${key}`, `and ${others.length} more`,
      table(`${title}, the others`, columns, others, PHONE))] : []),
  ];
}

function folded(key, title, content) {
  return h("details", { key }, h("summary", {}, title), content);
}

/** Each alert and key once, with the devices that report it and those that report it as on. */
function grouped(alerts) {
  const groups = new Map();
  for (const each of alerts) {
    const key = JSON.stringify([each.name, each.key]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups].map(([key, all]) => ({
    key, all,
    title: all[0].key ? `${all[0].name} (${all[0].key})` : all[0].name,
    on: all.filter((each) => each.state === "on"),
  }));
}

function alertRow({ key, all, title, on }, fleet) {
  const [first] = on.length > 0 ? on : all;
  return {
    key,
    cells: [
      title,
      on.length > 0 ? `${on.length} of ${count(all.length, "device")}` : "–",
      [first.fold, first.part, "was", shown(first.value, fleet.values[first.fold])]
        .filter(Boolean).join(" "),
      first.since ? new Date(first.since).toLocaleString() : "–",
    ],
  };
}

/** The number of an alert: in the unit of the fleet's value that it is on, where it is on one. */
function shown(number, value) {
  if (typeof number !== "number") return "–";
  return value ? `${decimal(number, value.places)} ${value.unit}`.trim() : Number(number.toPrecision(6));
}
