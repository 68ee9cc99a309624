// All text reaches the page as text: nothing here parses markup.

// el makes an element. Names that begin with "on" are listeners; null and false leave an attribute out.
export function el(tag, attrs = {}, ...children) {
  return fill(document.createElement(tag), attrs, children);
}

// svg makes an element of a drawing.
export function svg(tag, attrs = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);
}

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// rich returns a text whose commands in backquotes are set as code.
export function rich(text) {
  return String(text ?? "").split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

const painted = new WeakMap();

// paint builds the content of an element again if its data have changed. The focus stays on the element with
// the same data-key.
export function paint(node, data, build) {
  const text = JSON.stringify(data);
  if (painted.get(node) === text) return;
  painted.set(node, text);
  const inside = node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = new Set([...node.querySelectorAll("details[open]")].map((d) => d.dataset.key));
  node.replaceChildren(...[build()].flat(Infinity).filter(Boolean));
  for (const d of node.querySelectorAll("details")) if (open.has(d.dataset.key)) d.open = true;
  if (inside) node.querySelector(`[data-key="${CSS.escape(inside)}"]`)?.focus();
}

export const repaint = (node) => painted.delete(node);

// ago returns how long a time is past, in one unit.
export function ago(at, now) {
  const s = Math.max(0, (now - new Date(at)) / 1000);
  for (const [length, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (s >= 2 * length) return `${Math.floor(s / length)} ${name}`;
  return `${Math.floor(s)} s`;
}

export const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });

const letters = { GOOD: "G", SUSPECT: "S", BAD: "B", UNKNOWN: "?" };

// badge shows a health by color, letter and pattern.
export function badge(health, words = true) {
  return el("span", { class: `badge h-${health}`, title: words ? null : health }, el("span", { class: "letter", "aria-hidden": words ? "true" : null }, letters[health] ?? "?"), words ? health : null);
}

export function bar(percent, label) {
  const fill = el("span", { class: "bar-fill" });
  fill.style.inlineSize = `${percent}%`;
  return el("span", { class: "bar", role: "progressbar", "aria-valuenow": percent, "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": label }, fill);
}
