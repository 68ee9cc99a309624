import { el, rich, badge, bar, paint, repaint, ago, clock } from "./dom.js";
import { rack, legend } from "./rack.js";
import { parts } from "./drive.js";
import { cluster } from "./cluster.js";

const at = (id) => document.getElementById(id);
const words = new URLSearchParams(location.hash.slice(1)); // what the address says of the page
let state = null;
let selected = words.get("drive");
let more = {}; // what was read of the selected drive
const nodes = new Map(); // of a cluster, by their names
let view = null; // of a cluster
const want = { text: words.get("find") ?? "", healths: new Set(words.getAll("only")), view: words.get("view") === "list" ? "list" : "racks" };
let offset = 0; // of the clock of the daemon to ours

// --- connection

let lostAt = null;
let restarted = null;

function connect() {
  const source = new EventSource("/ui/state");
  source.addEventListener("part", (event) => {
    const node = JSON.parse(event.data);
    nodes.set(node.name, node);
  });
  source.onmessage = (event) => {
    const next = JSON.parse(event.data);
    if (state && state.started !== next.started) {
      restarted = { at: next.started, until: Date.now() + 15000 };
      setTimeout(show, 15100);
    }
    offset = new Date(next.now) - Date.now();
    const first = !state;
    state = next;
    lostAt = null;
    show();
    if (first && selected) read(selected);
  };
  source.onerror = async () => {
    lostAt ??= Date.now();
    show();
    if (source.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
    const stop = new AbortController();
    const answer = await fetch("/ui/state", { signal: stop.signal }).catch(() => null);
    if (answer?.status === 401) refused((await answer.json()).error.message);
    else setTimeout(connect, 1500);
    stop.abort();
  };
}

function refused(why) {
  lostAt = null;
  at("link").textContent = "no access";
  const notice = at("notice");
  notice.hidden = false;
  notice.className = "notice lost";
  notice.replaceChildren(el("p", {}, rich(`This browser has no access: ${why}.`)));
  at("main").classList.add("stale");
}

// --- parts

const object = (i) => (i.kind === "drive" && i.bay ? `drive ${i.name || i.id}, bay ${i.bay}` : ["drive", "volume", "node"].includes(i.kind) ? `${i.kind} ${i.name || i.id}` : i.kind);
const title = (i) => (i.node && i.kind !== "node" ? `${object(i)}, node ${i.node}` : object(i));
const verdicts = { FINE: "GOOD", DEGRADED: "SUSPECT", DATA_AT_RISK: "BAD", CANNOT_TELL: "UNKNOWN" };

function items(name, list, text, all = list.length) {
  if (!list.length) return null;
  return el("div", { class: "part" }, el("h3", {}, name), el("ul", { class: "plain" }, list.slice(0, 8).map((i, n) => el("li", { class: `item v-${verdicts[i.verdict]}` },
    el("span", { class: `chip v-${verdicts[i.verdict]}` }, i.state), " ",
    i.kind === "drive" ? el("button", { type: "button", class: "textlink", "data-key": `${name}-${n}-${i.id}`, onclick: () => choose(i.id) }, title(i)) : el("b", {}, title(i)),
    el("p", {}, rich(text(i))), i.progress && i.progress.total > 0 && bar(Math.floor((i.progress.done / i.progress.total) * 100), title(i))))),
    all > 8 && el("p", { class: "muted" }, rich(`and ${all - 8} more: \`${state.kind === "cluster" ? "kubectl " : ""}drivebay status\` lists all`)));
}

function now() {
  const o = state.overview;
  const holds = (i) => [i.text, i.unusable?.length && `cannot be used: ${i.unusable.join(", ")}`, i.volumes?.length && `holds ${i.volumes.join(", ")}`].filter(Boolean).join("; ");
  const waits = (i) => [i.text, i.next].filter(Boolean).join(": ");
  const same = (a) => (b) => a.kind === b.kind && a.id === b.id && a.state === b.state;
  const wrong = (i) => [holds(i), (state.kind !== "cluster" || i.kind !== "drive") && i.next].filter(Boolean).join(". Next: "); // a drive of a cluster shows it
  const others = o.waitsFor.filter((i) => i.text || !o.wrong.some(same(i))); // what is wrong shows its next step itself
  return [
    o.verdict === "FINE" && el("p", { class: "fine" }, state.kind === "cluster" ? "All nodes, drives and volumes are fine." : "All drives and volumes are fine."),
    items("Wrong", o.wrong, wrong, state.all?.[0]), items("Being done", o.doing, holds, state.all?.[1]), items("Waits for a person", others, waits, state.all?.[2]),
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
  remember();
  repaint(at("rack-body"));
  show();
  if (id) {
    read(id);
    at("drive-title")?.focus({ preventScroll: matchMedia("(min-width: 1000px)").matches });
  } else if (from) {
    [...document.querySelectorAll(`[data-drive="${CSS.escape(from)}"]`)].find((b) => b.checkVisibility())?.focus();
  }
}

// remember puts into the address what is looked at, so that a reload shows it again.
function remember() {
  const next = new URLSearchParams();
  if (selected) next.set("drive", selected);
  if (want.text) next.set("find", want.text);
  for (const health of want.healths) next.append("only", health);
  if (want.view !== "racks") next.set("view", want.view);
  history.replaceState(null, "", next.size ? `#${next}` : location.pathname);
}

async function read(id) {
  if (state?.kind === "cluster") {
    const detail = await fetch(`/ui/drives/${encodeURIComponent(id)}`).then((r) => (r.ok ? r.json() : r.status === 404 ? { gone: true } : null), () => null);
    if (id !== selected || !detail) return;
    more = detail;
    show();
    return;
  }
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

// message is what a person has to know of the connection.
function message() {
  const from = (then) => `What is shown is from ${clock(then)}. Trying again.`;
  if (lostAt) return state ? `Connection lost. ${from(lostAt + offset)}` : "The daemon does not answer. Trying again.";
  if (state?.away) {
    const what = state.away.refused ? "The API server does not show the drives to the program that serves the page." : "The API server does not answer.";
    return `${what} ${state.away.heard && state.ready ? from(state.away.heard) : "Trying again."}`;
  }
  if (state && !state.ready) return "The drives are being listed.";
  if (restarted) return `${state.kind === "cluster" ? "The program that serves the page" : "The daemon"} was restarted at ${clock(restarted.at)}.`;
  return "";
}

function show() {
  const link = at("link");
  const notice = at("notice");
  const old = Boolean(lostAt || state?.away);
  link.className = `link ${old ? "off" : "on"}`;
  link.textContent = old ? "not connected" : state ? "live" : "connecting";
  at("main").classList.toggle("stale", old);
  if (restarted && Date.now() > restarted.until) restarted = null;
  const text = message();
  notice.hidden = !text;
  notice.className = `notice${old ? " lost" : ""}`;
  paint(notice, [text, state?.away?.why], () => [el("p", {}, text), state?.away && !lostAt && el("p", { class: "small" }, state.away.why)]);
  if (!state) return;
  const name = state.overview.machine || "drivebay";
  document.title = `${state.overview.verdict === "FINE" ? "" : `${state.overview.verdict.replaceAll("_", " ")} · `}${name}`;
  paint(at("machine"), name, () => [name]);
  const verdict = at("verdict");
  verdict.hidden = !state.ready;
  verdict.className = `verdict v-${verdicts[state.overview.verdict]}`;
  paint(verdict, state.overview.verdict, () => [state.overview.verdict.replaceAll("_", " ")]);
  paint(at("now-body"), [state.overview, state.problems], now);
  if (state.kind === "cluster") showCluster();
  else showNode();
}

function showNode() {
  paint(at("server"), [state.server, state.simulated], () => [[state.server, state.simulated && "simulated"].filter(Boolean).join(" · ")]);
  paint(at("legend"), state.drives.map((d) => d.health), () => legend(state));
  const tiles = state.drives.map(({ id, name: n, health, status, usage, size, temperature, cordoned, system, percent }) => [id, n, health, status, usage, size, temperature, cordoned, system, percent]);
  paint(at("rack-body"), [state.groups, tiles, selected, state.ready], () => rack(state, selected, choose));
  paint(at("volumes-body"), [state.volumes, tiles.map((t) => t.slice(0, 2))], volumes);
  paint(at("events-body"), state.events.map((e) => e.seq), events);
  showDrive(state.drives.find((d) => d.id === selected), state);
}

function showCluster() {
  if (!view) {
    view = cluster(want, { choose, remember });
    document.body.classList.add("cluster");
    for (const id of ["rack", "volumes", "events"]) at(id).hidden = true;
    at("nodes").hidden = false;
    document.querySelector(".right").prepend(at("now"));
    at("skip").href = "#nodes";
  }
  for (const name of nodes.keys()) if (!state.nodes.includes(name)) nodes.delete(name);
  paint(at("server"), "cluster", () => ["Kubernetes cluster"]);
  view.show(state, nodes, selected);
  const d = more.drive;
  if (!selected || (d && d.id === selected)) {
    showDrive(selected ? d : null, { now: Date.now() + offset, volumes: more.volumes ?? [], drives: [d, more.after].filter(Boolean) });
    return;
  }
  const row = view.row(selected);
  showDrive({ id: selected }, null, [["head", [row?.name, more.gone], () => el("div", { class: "drive-head" }, el("div", {}, el("h2", { id: "drive-title", tabindex: "-1", "data-key": "drive-title" }, row?.name || selected),
    el("p", { class: "muted" }, more.gone ? "The drive is not known any more." : "Loading")), el("button", { type: "button", class: "button close", "aria-label": "Close the drive", "data-key": "close", onclick: () => choose(null) }, "✕"))]]);
}

// showDrive shows a drive beside the others; null: none.
function showDrive(drive, of, loading) {
  const box = at("drive");
  box.hidden = !drive;
  document.body.classList.toggle("has-drive", Boolean(drive));
  if (!drive) {
    box.dataset.drive = "";
    return;
  }
  const key = loading ? `${drive.id} loading` : drive.id;
  if (box.dataset.drive !== key) {
    const focus = box.contains(document.activeElement);
    box.dataset.drive = key;
    box.replaceChildren();
    box.scrollTop = 0;
    if (focus) setTimeout(() => at("drive-title")?.focus({ preventScroll: true }));
  }
  for (const [name, data, build] of loading ?? parts(of, drive, more, { close: () => choose(null), choose, done: (said) => { at("spoken").textContent = said; } })) {
    let part = box.querySelector(`:scope > [data-part=${name}]`);
    if (!part) box.append(part = el("div", { "data-part": name }));
    paint(part, data, build);
  }
}

connect();
