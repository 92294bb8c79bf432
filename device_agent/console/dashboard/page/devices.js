// The devices: those that are away first, or in the order, and of the kind, that the reader chose.

import { age, mark, nothing, table, tableRow } from "./nodes.js";

const body = (name) => document.getElementById(name);
const names = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** What may be wrong with a device, the worst first. */
const KINDS = {
  away: (each) => !each.connected,
  alarm: (each) => (each.alarms ?? []).length > 0,
  behind: (each) => each.agreed === "behind",
};

/** By what the reader may order them: a number, the greatest first; then by name. */
const ORDERS = {
  trouble: (each) => Object.values(KINDS).reduce((sum, is) => 2 * sum + Number(is(each)), 0),
  name: () => 0,
  own: (each) => Number.parseFloat(each.own.replaceAll(",", "")),
  readings: (each) => each.readings ?? Number.NaN,
  behind: (each) => -(each.behind_since ?? Number.NaN),
  last: (each) => -(each.last ?? Number.NEGATIVE_INFINITY),
};

/** Show the devices again whenever the reader chooses otherwise. */
export function watchChoice(render) {
  for (const name of ["search", "kind", "order"]) {
    for (const event of ["input", "change"]) body(name).addEventListener(event, render);
  }
}

/** Return the devices that were chosen, in their order, as [name, device]. */
function chosen(fleet) {
  const words = body("search").value.trim().toLowerCase();
  const fits = KINDS[body("kind").value] ?? (() => true);
  const worth = ORDERS[body("order").value];
  return Object.entries(fleet.devices)
    .filter(([name, each]) => fits(each) &&
      [name, ...(each.alarms ?? [])].some((text) => text.toLowerCase().includes(words)))
    .map(([name, each]) => [name, each, worth(each)])
    .sort(([one, , a], [other, , b]) =>
      Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || (b - a || 0) || names.compare(one, other));
}

/** Return the table of the devices that were chosen. */
export function devices(fleet) {
  const all = Object.keys(fleet.devices).length;
  body("choice").hidden = all < 2;
  if (all === 0) return nothing("No device has sent anything yet.");
  const columns = [
    { title: "device" }, { title: "state" },
    { title: fleet.own ?? "own value", number: true },
    { title: fleet.shared ? `${fleet.shared}, here` : "fleet's value", number: true },
    { title: "agrees" },
    { title: "readings", number: true },
    { title: "last message", number: true },
  ];
  const found = chosen(fleet);
  if (rowsShown.size > 2 * all) rowsShown.clear(); // devices that are no more
  const rows = found.map(([name, each]) => shownRow(columns, name, each, fleet.at));
  const more = fleet.count - all;
  return [
    table(found.length === all
      ? "The values of each device, and how far it is behind the others"
      : `${found.length} of ${all} devices`, columns, rows, { class: "cards-on-phone dense" }),
    more > 0 && nothing(`and ${more} more devices`),
  ];
}

const rowsShown = new Map(); // device -> its texts, and the row that was made of them

/** A row is made anew where a text of it has changed: of 200 devices few have, each second. */
function shownRow(columns, name, each, at) {
  const alarmed = KINDS.alarm(each);
  const last = each.last === undefined ? "–" : lastMessage(at - each.last);
  const texts = JSON.stringify([columns.map((column) => column.title), each.connected, alarmed,
    each.own, each.fleet, agreement(each, at), each.readings, last]);
  const before = rowsShown.get(name);
  if (before?.texts === texts) return before.row;
  const row = tableRow(columns, {
    key: name,
    cells: [
      name,
      [each.connected ? !alarmed && mark("good", "connected") : mark("bad", "away"),
        alarmed && [" ", mark("bad", "alarm")]],
      each.own, each.fleet,
      mark({ yes: "good", newest: "good" }[each.agreed] ?? "calm", agreement(each, at)),
      each.readings?.toLocaleString("en") ?? "–",
      last,
    ],
  });
  rowsShown.set(name, { texts, row });
  return row;
}

function lastMessage(seconds) {
  return seconds < 10 ? "just now" : `${age(seconds)} ago`;
}

function agreement(each, at) {
  if (each.agreed === "behind") return `${age(at - each.behind_since)} behind`;
  return each.agreed === "-" ? "unknown" : each.agreed;
}
