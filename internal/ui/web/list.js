import { el, badge } from "./dom.js";

// The list builds only the rows that are in sight: all of a large cluster would take seconds.
const spare = 8; // rows above and below
const columns = [
  ["health", (d) => (d.gone ? el("span", { class: "chip" }, "OFFLINE") : badge(d.health))],
  ["drive", null],
  ["node", (d) => d.node],
  ["bay", (d) => d.bay || "–"],
  ["why", (d) => [d.mark && d.mark !== "OFFLINE" && el("span", { class: "chip" }, d.percent !== undefined ? `${d.mark} ${d.percent} %` : d.mark), d.mark && " ", d.why ?? ""]],
  ["volumes", (d) => (d.volumes ?? []).join(", ")],
  ["size", (d) => `${d.kind} ${d.size}`],
  ["model", (d) => d.model],
  ["serial", (d) => d.serial],
];

// list returns an element that shows rows of drives, and a function that gives it other rows.
export function list(choose) {
  const head = el("div", { role: "row", class: "line head", "aria-rowindex": "1" }, columns.map(([name]) => el("span", { role: "columnheader", class: `c-${name}` }, name)));
  const above = el("div", { "aria-hidden": "true" });
  const below = el("div", { "aria-hidden": "true" });
  const body = el("div", { role: "rowgroup" });
  const node = el("div", { role: "table", class: "list", tabindex: "0", "aria-label": "Drives, the worst first" }, el("div", { role: "rowgroup", class: "list-head" }, head), above, body, below);
  let rows = [];
  let selected = null;
  let shown = new Map(); // line by drive, of those that are built
  let height = 0;

  function line(d, at) {
    const row = el("div", { role: "row", class: `line h-${d.health}${d.gone ? " gone" : ""}`, "aria-rowindex": at + 2, onclick: () => choose(d.id) }, columns.map(([name, of]) => el("span", { role: "cell", class: `c-${name}`, title: name === "why" ? d.why : null },
      of ? of(d) : el("button", { type: "button", class: "textlink", "data-drive": d.id, "aria-label": `drive ${d.name || d.id}, ${d.node}, bay ${d.bay || "none"}` }, d.name || d.id))));
    row.classList.toggle("chosen", d.id === selected);
    return row;
  }

  function fill() {
    if (!height && rows.length) {
      body.replaceChildren(line(rows[0], 0));
      height = body.firstChild.getBoundingClientRect().height;
      shown = new Map();
    }
    if (!height) {
      body.replaceChildren();
      return;
    }
    const first = Math.max(0, Math.min(Math.floor(node.scrollTop / height) - spare, rows.length - 1));
    const last = Math.min(rows.length, Math.ceil((node.scrollTop + node.clientHeight) / height) + spare);
    const next = new Map();
    for (let i = first; i < last; i++) {
      const was = shown.get(rows[i]);
      if (was) was.setAttribute("aria-rowindex", i + 2);
      next.set(rows[i], was ?? line(rows[i], i));
    }
    for (const [d, row] of shown) if (!next.has(d) && !row.contains(document.activeElement)) row.remove();
    let at = body.firstChild;
    for (const row of next.values()) {
      if (row === at) at = at.nextSibling;
      else body.insertBefore(row, at);
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
    above.style.blockSize = `${first * height}px`;
    below.style.blockSize = `${Math.max(0, rows.length - last) * height}px`;
    shown = next;
  }

  let due = false;
  node.addEventListener("scroll", () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; fill(); });
  }, { passive: true });
  let width = 0;
  new ResizeObserver(() => {
    if (node.clientWidth !== width) height = 0; // a row is as high as the columns that have room make it
    width = node.clientWidth;
    fill();
  }).observe(node);

  return {
    node,
    show(next, drive) {
      rows = next;
      node.setAttribute("aria-rowcount", rows.length + 1);
      if (selected !== drive) {
        selected = drive;
        for (const [d, row] of shown) row.classList.toggle("chosen", d.id === selected);
      }
      fill();
    },
  };
}
