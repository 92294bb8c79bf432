// Elements as plain data, and bringing a part of the page up to date with them.
//
// What stays the same is left alone, so focus, selection and opened details survive every update.
// Texts become text nodes and attributes, never markup: device names are whatever strangers send.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element: its tag, its attributes (`key` tells it from its siblings), its children. */
export function h(tag, attributes = {}, ...children) {
  const there = (child) => child !== null && child !== undefined && child !== false;
  return { tag, attributes, children: children.flat(Infinity).filter(there) };
}

/** Make the children of `parent` be the wanted ones. */
export function show(parent, ...wanted) {
  const list = wanted.flat(Infinity).filter((child) => child !== null && child !== false);
  const keyed = new Map();
  for (const node of parent.childNodes) {
    if (node.laspKey !== undefined) keyed.set(node.laspKey, node);
  }
  list.forEach((want, at) => {
    const here = parent.childNodes[at] ?? null;
    const key = want.attributes?.key;
    const found = key === undefined ? here : keyed.get(key) ?? null;
    const node = fits(found, want, key) ? found : made(want, parent);
    if (node !== here) parent.insertBefore(node, here);
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data !== String(want)) node.data = String(want);
    } else if (node.laspShown !== want) {
      dress(node, want.attributes);
      show(node, want.children);
      node.laspShown = want; // the same object again: nothing in it has changed
    }
  });
  while (parent.childNodes.length > list.length) parent.lastChild.remove();
}

function fits(node, want, key) {
  if (!node) return false;
  if (typeof want !== "object") return node.nodeType === Node.TEXT_NODE;
  return node.nodeName.toLowerCase() === want.tag.toLowerCase() && node.laspKey === key;
}

function made(want, parent) {
  if (typeof want !== "object") return document.createTextNode(String(want));
  const inSvg = want.tag === "svg" || parent.namespaceURI === SVG;
  const node = inSvg ? document.createElementNS(SVG, want.tag) : document.createElement(want.tag);
  node.laspKey = want.attributes.key;
  if (want.attributes.open) node.open = true; // at first; then it is the reader's
  return node;
}

function dress(node, attributes) {
  for (const { name } of [...node.attributes]) {
    if (name !== "open" && (attributes[name] ?? null) === null) node.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "key" || name === "open" || value === undefined || value === null) continue;
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
  }
}

/** A word on a coloured ground: good, calm, soft or bad. */
export function mark(kind, text) {
  return h("span", { class: `mark ${kind}` }, text);
}

export function nothing(...words) {
  return h("p", { class: "quiet" }, words);
}

export function count(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

/** The first names, and how many more there are. */
export function listed(names, most = 3) {
  if (names.length > most) return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
  return new Intl.ListFormat("en").format(names);
}

/** A time that has passed, the coarser the longer: a text that stays costs nothing. */
export function age(seconds) {
  if (seconds < 10) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 120) return `${Math.round(seconds / 10) * 10} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/**
 * Return a table. Each column is {title, number?}; each row is {key, cells}, the first cell being
 * the row's heading, or one that `tableRow` made before. On a phone a row becomes a card, so roles
 * and titles are repeated.
 */
export function table(caption, columns, rows, attributes = {}) {
  return h("table", { role: "table", ...attributes },
    h("caption", {}, caption),
    h("thead", { role: "rowgroup" },
      h("tr", { role: "row" }, columns.map((column) =>
        h("th", { scope: "col", role: "columnheader", class: column.number ? "number" : null },
          column.title)))),
    h("tbody", { role: "rowgroup" },
      rows.map((row) => (row.tag ? row : tableRow(columns, row)))));
}

export function tableRow(columns, { key, cells }) {
  return h("tr", { role: "row", key }, cells.map((content, at) =>
    h(at === 0 ? "th" : "td",
      {
        scope: at === 0 ? "row" : null,
        role: at === 0 ? "rowheader" : "cell",
        class: columns[at].number ? "number" : null,
        "data-title": columns[at].title,
      },
      content)));
}
