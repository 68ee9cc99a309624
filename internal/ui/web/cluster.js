import { el, badge, paint } from "./dom.js";
import { move, short } from "./rack.js";
import { known, query } from "./find.js";
import { list } from "./list.js";

const at = (id) => document.getElementById(id);
const number = (n) => n.toLocaleString("en");
const many = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
const verdicts = { FINE: "GOOD", DEGRADED: "SUSPECT", DATA_AT_RISK: "BAD", CANNOT_TELL: "UNKNOWN" };
const kinds = ["BAD", "SUSPECT", "UNKNOWN", "GOOD", "OFFLINE"];
const rank = Object.fromEntries(["BAD", "OFFLINE", "SUSPECT", "UNKNOWN", "GOOD"].map((k, i) => [k, i]));
const kindOf = (d) => (d.gone ? "OFFLINE" : d.health);

// cluster shows the nodes of a cluster, as racks or as a list. want holds what a person looks for, and remember keeps it.
export function cluster(want, { choose, remember }) {
  const shown = new Map(); // by the name of the node: its data, its drives, its element, the button of each drive
  const table = list(choose);
  let state = null;
  let parts = new Map();
  let selected = null;
  let drives = [];

  at("list-body").append(table.node);
  at("find").value = want.text;
  at("find").addEventListener("input", () => {
    want.text = at("find").value;
    remember();
    filter();
  });
  for (const view of ["racks", "list"]) at(`view-${view}`).addEventListener("click", () => { want.view = view; remember(); filter(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    at("find").focus();
  });

  function only(text) {
    at("find").value = want.text = text;
    want.healths.clear();
    remember();
    filter();
    at("find").focus();
  }

  function cell(d) {
    const text = short(d.bay) || d.name || "–";
    const words = [d.bay ? `bay ${text}` : "no bay", `drive ${d.name || d.id}`, kindOf(d), d.size, d.mark && d.mark !== "OFFLINE" && d.mark, d.lit && "light on", d.fault && "fault light on"].filter(Boolean).join(", ");
    return el("button", {
      type: "button", class: `cell h-${d.health}${d.gone ? " gone" : ""}${d.lit ? " lit" : ""}${d.fault ? " fault" : ""}`, tabindex: "-1", "aria-label": words, title: d.why ? `${words}: ${d.why}` : words, "data-drive": d.id, "data-key": d.id,
    }, text);
  }

  function node(data, name) {
    const all = data.enclosures.flatMap((e) => e.drives.map((d) => known(d, name, e.title)));
    const cells = new Map(all.map((d) => [d, cell(d)]));
    const count = (k) => all.filter((d) => kindOf(d) === k).length;
    const counts = kinds.filter((k) => k !== "GOOD" && count(k)).map((k) => el("span", { class: `count h-${k}` }, `${count(k)} ${k}`));
    let i = 0;
    const box = el("section", { class: `node${data.down ? " down" : ""}`, "aria-label": `node ${name}`, "data-node": name },
      el("div", { class: "node-head" }, el("h3", {}, el("button", { type: "button", class: "textlink", "data-key": `node-${name}`, title: "Show only this node", onclick: () => only(`node:${name}`) }, name)),
        el("span", { class: `chip v-${data.down ? "UNKNOWN" : verdicts[data.verdict]}` }, data.down ? "NOT REPORTING" : data.verdict.replaceAll("_", " ")),
        el("span", { class: "muted small" }, many(all.length, "drive")), counts),
      data.down && el("p", { class: "old small" }, `${data.down}. What is shown of it is old.`),
      data.server && el("p", { class: "muted small" }, data.server),
      el("div", { class: "enclosures", onkeydown: move, onclick: (event) => { const b = event.target.closest("button.cell"); if (b) choose(b.dataset.drive); } },
        data.enclosures.map((e) => el("div", { class: "enclosure", role: "group", "aria-label": e.title }, data.enclosures.length > 1 && el("p", { class: "muted small" }, e.title), el("div", { class: "cells" }, e.drives.map(() => cells.get(all[i++])))))));
    all.sort((a, b) => rank[kindOf(a)] - rank[kindOf(b)]);
    const first = box.querySelector(".cell");
    if (first) first.tabIndex = 0;
    return { data, drives: all, box, cells };
  }

  // build makes the elements of the nodes that have changed.
  function build() {
    let changed = false;
    for (const name of [...shown.keys()]) {
      if (parts.has(name)) continue;
      shown.get(name).box.remove();
      shown.delete(name);
      changed = true;
    }
    for (const name of state.nodes) {
      const data = parts.get(name);
      const was = shown.get(name);
      if (!data || was?.data === data) continue;
      const next = node(data, name);
      shown.set(name, next);
      changed = true;
      if (!was) continue;
      const focus = was.box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      was.box.replaceWith(next.box);
      if (focus) next.box.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
    }
    const order = state.nodes.map((name) => shown.get(name)?.box).filter(Boolean);
    const body = at("nodes-body");
    if (order.some((box, i) => body.children[i] !== box) || body.children.length !== order.length) {
      const focus = body.contains(document.activeElement) ? document.activeElement : null;
      body.replaceChildren(...order);
      focus?.focus({ preventScroll: true });
    }
    if (changed) drives = state.nodes.flatMap((name) => shown.get(name)?.drives ?? []);
    return changed;
  }

  function counts() {
    const n = Object.fromEntries(kinds.map((k) => [k, 0]));
    for (const d of drives) n[kindOf(d)]++;
    paint(at("healths"), [n, [...want.healths]], () => kinds.map((k) => el("button", {
      type: "button", class: `toggle h-${k}`, "aria-pressed": want.healths.has(k) ? "true" : "false", "data-key": k, "data-health": k,
      onclick: () => { if (!want.healths.delete(k)) want.healths.add(k); remember(); counts(); filter(); },
    }, k === "OFFLINE" ? el("span", { class: "badge" }, k) : badge(k), " ", el("b", {}, number(n[k])))));
  }

  // filter shows the drives that a person looks for.
  function filter() {
    const match = query(want.text, want.healths, drives);
    const narrow = Boolean(want.text.trim() || want.healths.size);
    const found = [];
    let nodes = 0;
    for (const name of state.nodes) {
      const n = shown.get(name);
      if (!n) continue;
      let some = false;
      for (const d of n.drives) {
        const is = match(d);
        if (is) found.push(d);
        some ||= is;
        const cell = n.cells.get(d);
        if (cell.classList.contains("off") === is) cell.classList.toggle("off", !is);
        const current = d.id === selected;
        if (cell.hasAttribute("aria-current") !== current) current ? cell.setAttribute("aria-current", "true") : cell.removeAttribute("aria-current");
      }
      if (n.box.hidden === (some || !narrow)) n.box.hidden = !some && narrow;
      nodes += some || !narrow ? 1 : 0;
    }
    found.sort((a, b) => rank[kindOf(a)] - rank[kindOf(b)]);
    counts();
    const all = `${many(drives.length, "drive")} on ${many(state.nodes.length, "node")}`;
    const text = !state.ready ? "" : !narrow ? all : `${number(found.length)} of ${all}, on ${many(nodes, "node")}`;
    paint(at("found"), [text, narrow], () => [text, narrow && " ", narrow && el("button", { type: "button", class: "textlink", "data-key": "clear", onclick: () => only("") }, "Show all")]);
    for (const view of ["racks", "list"]) at(`view-${view}`).setAttribute("aria-pressed", want.view === view ? "true" : "false");
    at("nodes-body").hidden = want.view !== "racks";
    at("list-body").hidden = want.view !== "list";
    if (want.view === "list") table.show(found, selected);
  }

  return {
    // show shows a state; nodes are its parts by their names.
    show(next, nodes, drive) {
      state = next;
      parts = nodes;
      if (!state.ready) return;
      if (!state.nodes.length) {
        paint(at("nodes-body"), "none", () => el("p", {}, "The cluster has no Drive objects: no daemon of a node has written one yet. ", el("code", {}, "kubectl get drives"), " and the pods of the DaemonSet show more."));
        return;
      }
      const changed = build();
      if (changed || drive !== selected) {
        selected = drive;
        filter();
      }
    },
    // row returns what is known of a drive without asking for it.
    row: (id) => drives.find((d) => d.id === id),
  };
}
