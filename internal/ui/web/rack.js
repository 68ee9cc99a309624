import { el, badge, bar } from "./dom.js";

// short is the label of a bay: "Slot 07" is "7".
export const short = (name) => (name ? name.replace(/^\D*0*(?=\d)/, "") || name : "");

function words(bay, d) {
  const parts = [bay.name ? `bay ${bay.name}` : "no bay"];
  if (!d) return [...parts, "empty"].join(", ");
  parts.push(`drive ${d.name || d.id}`, d.status === "OFFLINE" ? "OFFLINE" : d.health, d.size);
  if (d.usage !== "IN_USE") parts.push(d.usage);
  if (d.temperature !== undefined) parts.push(`${d.temperature} °C`);
  if (d.cordoned) parts.push("cordoned");
  if (bay.lit) parts.push("light on");
  if (bay.fault) parts.push("fault light on");
  return parts.join(", ");
}

function tile(bay, d, selected, choose, first) {
  const id = bay.drive || bay.gone;
  const gone = d && (!bay.drive || d.status === "OFFLINE");
  const lights = el("span", { class: "lights", "aria-hidden": "true" }, bay.lit && el("i", { class: "light locate" }), bay.fault && el("i", { class: "light fault" }));
  const head = el("span", { class: "tile-head" }, el("span", { class: "tile-bay" }, short(bay.name) || "–"), lights, d && badge(d.health, false));
  if (!d) return el("li", {}, el("span", { class: "tile empty", "aria-label": words(bay), role: "img" }, head, el("span", { class: "tile-name" }, "empty")));
  const facts = [d.size, d.temperature !== undefined ? `${d.temperature} °C` : "–"].map((text) => el("span", { class: "tile-fact" }, text));
  const mark = gone ? "OFFLINE" : d.usage !== "IN_USE" ? d.usage : d.cordoned ? "cordoned" : d.system ? "system" : "";
  const button = el("button", {
    type: "button", class: `tile h-${d.health}${gone ? " gone" : ""}`, "data-key": `tile-${id}-${bay.name ?? ""}`, "data-drive": id,
    "data-words": words(bay, d), "aria-current": id === selected ? "true" : null, tabindex: id === selected || first ? "0" : "-1", onclick: () => choose(id),
  }, el("span", { class: "spoken" }, words(bay, d)), el("span", { class: "tile-body", "aria-hidden": "true" }, head, el("span", { class: `tile-name${d.name?.length > 6 ? " long" : ""}` }, d.name || "–"), facts, el("span", { class: "tile-mark" }, mark),
    d.percent !== undefined && bar(d.percent, "done")));
  return el("li", {}, button);
}

// rack draws the enclosures and their bays.
export function rack(state, selected, choose) {
  const drives = new Map(state.drives.map((d) => [d.id, d]));
  if (state.groups.length === 0) {
    return el("div", { class: "nothing" }, el("p", {}, "The machine has no drives and no bays that the kernel shows."), state.problems?.map((p) => el("p", { class: "muted" }, p)));
  }
  const has = selected && state.groups.some((g) => g.bays.some((b) => (b.drive || b.gone) === selected));
  return state.groups.map((g) => {
    let first = !has;
    const tiles = g.bays.map((b) => {
      const d = drives.get(b.drive || b.gone);
      const t = tile(b, d, selected, choose, first && d);
      if (d) first = false;
      return t;
    });
    const list = el("ul", { class: "bays", onkeydown: move }, tiles);
    return el("div", { class: "chassis" }, el("h3", {}, g.title, " ", el("span", { class: "muted" }, ` ${g.bays.filter((b) => b.drive).length} of ${g.bays.length}`)), list);
  });
}

// move moves the focus from bay to bay with the arrow keys.
export function move(event) {
  const tiles = [...event.currentTarget.querySelectorAll("button")];
  const at = tiles.indexOf(document.activeElement);
  if (at < 0) return;
  const here = tiles[at].getBoundingClientRect();
  const column = (down) => tiles.map((t, i) => [t.getBoundingClientRect(), i])
    .filter(([r]) => (down ? r.top > here.top + 4 : r.top < here.top - 4))
    .sort(([a], [b]) => Math.abs(a.top - here.top) - Math.abs(b.top - here.top) || Math.abs(a.left - here.left) - Math.abs(b.left - here.left))[0]?.[1];
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tiles.length - 1, ArrowDown: column(true), ArrowUp: column(false) }[event.key];
  if (to === undefined || !tiles[to]) return;
  event.preventDefault();
  for (const t of tiles) if (t.tabIndex === 0) t.tabIndex = -1;
  tiles[to].tabIndex = 0;
  tiles[to].focus();
}

// legend names the colors, letters and patterns.
export function legend(state) {
  const count = (h) => state.drives.filter((d) => d.health === h).length;
  return ["GOOD", "SUSPECT", "BAD", "UNKNOWN"].map((h) => el("li", {}, badge(h), el("span", { class: "muted" }, ` ${count(h)}`)));
}
