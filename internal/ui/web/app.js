import { el, rich, badge, bar, paint, repaint, ago, clock } from "./dom.js";
import { rack, legend } from "./rack.js";
import { parts } from "./drive.js";

const at = (id) => document.getElementById(id);
let state = null;
let selected = new URLSearchParams(location.hash.slice(1)).get("drive");
let more = {}; // what was read of the selected drive
let offset = 0; // of the clock of the daemon to ours

// --- connection

let lostAt = null;
let restarted = null;

function connect() {
  const source = new EventSource("/ui/state");
  source.onmessage = (event) => {
    const next = JSON.parse(event.data);
    if (state && state.started !== next.started) {
      restarted = { at: next.started, until: Date.now() + 15000 };
      setTimeout(show, 15100);
    }
    offset = new Date(next.now) - Date.now();
    state = next;
    lostAt = null;
    show();
  };
  source.onerror = async () => {
    lostAt ??= Date.now();
    show();
    if (source.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
    const status = await fetch("/ui/state", { method: "HEAD" }).then((r) => r.status, () => 0);
    if (status === 401) refused();
    else setTimeout(connect, 1500);
  };
}

function refused() {
  lostAt = null;
  at("link").textContent = "no access";
  const notice = at("notice");
  notice.hidden = false;
  notice.className = "notice lost";
  notice.replaceChildren(el("p", {}, rich("This browser has no access. Run `drivebay ui` and open the link that it prints.")));
  at("main").classList.add("stale");
}

// --- parts

const title = (i) => (i.kind === "drive" && i.bay ? `drive ${i.name || i.id}, bay ${i.bay}` : i.kind === "drive" || i.kind === "volume" ? `${i.kind} ${i.name || i.id}` : i.kind);
const verdicts = { FINE: "GOOD", DEGRADED: "SUSPECT", DATA_AT_RISK: "BAD", CANNOT_TELL: "UNKNOWN" };

function items(name, list, text) {
  if (!list.length) return null;
  return el("div", { class: "part" }, el("h3", {}, name), el("ul", { class: "plain" }, list.slice(0, 8).map((i, n) => el("li", { class: `item v-${verdicts[i.verdict]}` },
    el("span", { class: `chip v-${verdicts[i.verdict]}` }, i.state), " ",
    i.kind === "drive" ? el("button", { type: "button", class: "textlink", "data-key": `${name}-${n}-${i.id}`, onclick: () => choose(i.id) }, title(i)) : el("b", {}, title(i)),
    el("p", {}, rich(text(i))), i.progress && i.progress.total > 0 && bar(Math.floor((i.progress.done / i.progress.total) * 100), title(i))))),
    list.length > 8 && el("p", { class: "muted" }, rich(`and ${list.length - 8} more: \`drivebay status\` lists all`)));
}

function now() {
  const o = state.overview;
  const holds = (i) => [i.text, i.unusable?.length && `cannot be used: ${i.unusable.join(", ")}`, i.volumes?.length && `holds ${i.volumes.join(", ")}`].filter(Boolean).join("; ");
  const waits = (i) => [i.text, i.next].filter(Boolean).join(": ");
  const same = (a) => (b) => a.kind === b.kind && a.id === b.id && a.state === b.state;
  const wrong = (i) => [holds(i), i.next].filter(Boolean).join(". Next: ");
  const others = o.waitsFor.filter((i) => i.text || !o.wrong.some(same(i))); // what is wrong shows its next step itself
  return [
    o.verdict === "FINE" && el("p", { class: "fine" }, "All drives and volumes are fine."),
    items("Wrong", o.wrong, wrong), items("Being done", o.doing, holds), items("Waits for a person", others, waits),
    state.problems?.map((p) => el("p", { class: "muted" }, rich(p))),
    el("p", { class: "next" }, el("b", {}, "Next: "), rich(o.next)),
  ].flat();
}

function volumes() {
  if (!state.volumes.length) return el("p", { class: "muted" }, rich("There are no volumes. `drivebay volume create NAME --size 10GiB` makes one on a claimed drive."));
  const names = new Map(state.drives.map((d) => [d.id, d]));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of the volumes" }, el("table", {},
    el("thead", {}, el("tr", {}, ["volume", "size", "state", "health", "drives", "used by"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, state.volumes.map((v) => el("tr", {}, el("th", { scope: "row" }, v.name), el("td", {}, v.size),
      el("td", {}, v.work ? `${v.state}, ${v.work}` : v.state, v.percent !== undefined && bar(v.percent, v.work)), el("td", {}, badge(v.health)),
      el("td", {}, (v.drives ?? []).map((id) => el("button", { type: "button", class: "textlink", "data-key": `${v.id}-${id}`, onclick: () => choose(id) }, names.get(id)?.bay || names.get(id)?.name || id))),
      el("td", {}, v.users?.join(", ") || "not mounted"))))));
}

function events() {
  if (!state.events.length) return el("p", { class: "muted" }, "Nothing has happened yet.");
  return el("ol", { class: "events", tabindex: "0", "aria-label": "The newest events first" }, state.events.map((e) => el("li", {}, el("time", { datetime: e.at }, clock(e.at)), el("div", {}, el("b", {}, e.kind), el("p", {}, rich(e.text))))));
}

// --- the selected drive

function choose(id) {
  const from = selected;
  selected = id;
  more = {};
  history.replaceState(null, "", id ? `#drive=${encodeURIComponent(id)}` : location.pathname);
  repaint(at("rack-body"));
  show();
  if (id) {
    read(id);
    at("drive-title")?.focus({ preventScroll: matchMedia("(min-width: 1000px)").matches });
  } else if (from) {
    document.querySelector(`[data-drive="${CSS.escape(from)}"]`)?.focus();
  }
}

async function read(id) {
  const get = (way) => fetch(`/api/v1/drives/${encodeURIComponent(id)}${way}`).then((r) => (r.ok ? r.json() : null), () => null);
  const [drive, history] = await Promise.all([get(""), get("/history")]);
  if (id !== selected) return;
  more = { drive, history, failed: !history };
  show();
}

setInterval(() => { if (selected && !lostAt && !document.hidden) read(selected); }, 5000);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && selected && !at("ask").open) choose(null);
});

// --- all

function show() {
  const link = at("link");
  const notice = at("notice");
  link.className = `link ${lostAt ? "off" : "on"}`;
  link.textContent = lostAt ? "not connected" : state ? "live" : "connecting";
  at("main").classList.toggle("stale", Boolean(lostAt));
  if (restarted && Date.now() > restarted.until) restarted = null;
  const text = lostAt ? (state ? `Connection lost. What is shown is from ${clock(Date.now() + offset - (Date.now() - lostAt))}. Trying again.` : "The daemon does not answer. Trying again.")
    : state && !state.ready ? "The drives are being listed." : restarted ? `The daemon was restarted at ${clock(restarted.at)}.` : "";
  notice.hidden = !text;
  notice.className = `notice${lostAt ? " lost" : ""}`;
  paint(notice, text, () => [el("p", {}, text)]);
  if (!state) return;
  const name = state.overview.machine || "drivebay";
  document.title = `${state.overview.verdict === "FINE" ? "" : `${state.overview.verdict.replaceAll("_", " ")} · `}${name}`;
  paint(at("machine"), name, () => [name]);
  paint(at("server"), [state.server, state.simulated], () => [[state.server, state.simulated && "simulated"].filter(Boolean).join(" · ")]);
  const verdict = at("verdict");
  verdict.hidden = !state.ready;
  verdict.className = `verdict v-${verdicts[state.overview.verdict]}`;
  paint(verdict, state.overview.verdict, () => [state.overview.verdict.replaceAll("_", " ")]);
  paint(at("now-body"), [state.overview, state.problems], now);
  paint(at("legend"), state.drives.map((d) => d.health), () => legend(state));
  const tiles = state.drives.map(({ id, name: n, health, status, usage, size, temperature, cordoned, system, percent }) => [id, n, health, status, usage, size, temperature, cordoned, system, percent]);
  paint(at("rack-body"), [state.groups, tiles, selected, state.ready], () => rack(state, selected, choose));
  paint(at("volumes-body"), [state.volumes, tiles.map((t) => t.slice(0, 2))], volumes);
  paint(at("events-body"), state.events.map((e) => e.seq), events);
  const drive = state.drives.find((d) => d.id === selected);
  const box = at("drive");
  box.hidden = !drive;
  document.body.classList.toggle("has-drive", Boolean(drive));
  if (!drive) return;
  if (box.dataset.drive !== drive.id) {
    box.dataset.drive = drive.id;
    box.replaceChildren();
    box.scrollTop = 0;
  }
  for (const [key, data, build] of parts(state, drive, more, { close: () => choose(null), choose, done: (said) => { at("spoken").textContent = said; } })) {
    let part = box.querySelector(`:scope > [data-part=${key}]`);
    if (!part) box.append(part = el("div", { "data-part": key }));
    paint(part, data, build);
  }
}

connect();
if (selected) read(selected);
