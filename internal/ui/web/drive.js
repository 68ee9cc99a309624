import { el, rich, badge, bar, ago } from "./dom.js";
import { charts } from "./chart.js";
import { ask, may } from "./action.js";

const section = (title, ...body) => el("div", { class: "part" }, el("h3", {}, title), body);
const marks = { done: "✓", now: "●", next: "○", failed: "!" };
const spoken = { done: "done", now: "now", next: "not yet", failed: "failed" };

function steps(d) {
  return el("ol", { class: "steps" }, d.steps.map((s) => el("li", { class: `step s-${s.state}`, "aria-current": s.state === "now" ? "step" : null },
    el("span", { class: "step-mark", "aria-hidden": "true" }, marks[s.state]),
    el("div", {}, el("b", {}, s.title), el("span", { class: "spoken" }, ` (${spoken[s.state]})`), s.text && el("p", {}, rich(s.text)),
      s.percent !== undefined && el("div", { class: "row" }, bar(s.percent, s.title), el("span", {}, `${s.percent} %`))))));
}

function buttons(d, done) {
  if (!d.actions?.length) return null;
  return [el("div", { class: "buttons" }, d.actions.map((a) => el("button", {
    type: "button", class: `button${a.primary ? " strong" : ""}`, "data-key": `do-${a.do}`, "data-do": a.do, disabled: !may(), onclick: () => ask(d, a, done),
  }, a.label))), !may() && el("p", { class: "muted" }, rich("This tab may only read. Run `drivebay ui` and open the link that it prints."))];
}

// commands are what an operator may run, where the page only reads.
function commands(list, done) {
  if (!list?.length) return null;
  const some = (primary) => list.filter((c) => Boolean(c.primary) === primary).map((c) => el("li", {}, el("b", {}, c.label), el("p", { class: "muted small" }, c.effect),
    el("div", { class: "command" }, el("code", { tabindex: "0" }, c.command), el("button", { type: "button", class: "button", "aria-label": `Copy the command: ${c.label}`, "data-key": `copy-${c.command}`, onclick: (event) => copy(event, c.command, done) }, "Copy"))));
  const [first, others] = [some(true), some(false)];
  return [first.length > 0 && el("ul", { class: "plain commands" }, first),
    others.length > 0 && el("details", { "data-key": "commands" }, el("summary", { "data-key": "commands-summary" }, first.length ? "Other commands" : "Commands"), el("ul", { class: "plain commands" }, others))];
}

async function copy(event, text, done) {
  const code = event.currentTarget.previousElementSibling;
  try {
    await navigator.clipboard.writeText(text);
    done("The command is copied.");
  } catch { // the browser does not allow it: the person copies what is selected
    getSelection().selectAllChildren(code);
    done("The command is selected.");
  }
}

function finding(f, now) {
  const since = f.since ? ` since ${ago(f.since, now)}` : "";
  return el("li", { class: "finding" }, el("div", { class: "row" }, badge(f.severity), el("code", {}, f.code), el("span", { class: "muted" }, f.gone ? `gone ${ago(f.gone, now)}` : since)),
    el("p", {}, rich(f.text)), f.advice && el("p", { class: "advice" }, rich(f.advice)));
}

// evidence lists what the drive and the kernel say.
function evidence(whole, now) {
  const rows = [];
  const add = (name, value) => value !== undefined && value !== null && value !== "" && rows.push([name, String(value)]);
  const e = whole.evidence;
  if (e) {
    add("asked", `${ago(e.at, now)} ago, ${e.source}`);
    add("its own verdict", e.verdict);
    if (e.nvme) {
      add("critical warning", `0x${e.nvme.criticalWarning.toString(16).padStart(2, "0")}`);
      add("spare", `${e.nvme.availableSpare} %, threshold ${e.nvme.spareThreshold} %`);
      add("media errors", e.nvme.mediaErrors);
      add("unsafe shutdowns", e.nvme.unsafeShutdowns);
    }
    if (e.scsi) {
      add("grown defects", e.scsi.grownDefects);
      add("pending defects", e.scsi.pendingDefects);
      for (const [kind, c] of Object.entries(e.scsi.errors ?? {})) add(`${kind} errors`, `${c.corrected} corrected, ${c.uncorrected} uncorrected`);
    }
    for (const t of (e.selfTests ?? []).slice(0, 1)) add("last self-test", `${t.kind}: ${t.text}`);
    for (const p of e.problems ?? []) if (!p.expected) add("could not be read", `${p.page ?? ""} ${p.text}`);
  }
  const k = whole.kernel;
  if (k) {
    add("state in the kernel", k.state);
    add("I/O errors", k.ioErrors);
    add("bad sectors in 24 h", k.mediaErrors24h);
    add("kernel log", k.lastLog);
  }
  const table = e?.ata?.attributes?.length ? el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "SMART attributes" }, el("table", {}, el("thead", {}, el("tr", {}, ["id", "attribute", "now", "worst", "limit", "raw"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, e.ata.attributes.map((a) => el("tr", {}, el("td", {}, a.id), el("th", { scope: "row" }, a.name), el("td", {}, a.value ?? "–"), el("td", {}, a.worst ?? "–"), el("td", {}, a.threshold ?? "–"), el("td", {}, a.text ?? a.raw)))))) : null;
  return el("details", { "data-key": "evidence" }, el("summary", { "data-key": "evidence-summary" }, "What the drive and the kernel say"), el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))), table);
}

// parts describes one drive: for each part the data that it shows, and how it is built. more holds what was read
// of the drive: itself with its evidence, and its history; of a drive of a cluster, its node and the commands. A part is built again only if its data change, so that
// a button stays under the pointer.
export function parts(state, d, more, { close, choose, done }) {
  const now = new Date(state.now);
  const volumes = state.volumes.filter((v) => d.volumes?.includes(v.id));
  const after = state.drives.find((o) => o.succeeds === d.id);
  const cluster = more.node !== undefined;
  const minute = d.findings?.length ? Math.floor(now / 60000) : 0; // "since 3 min" changes
  const fact = (name, value) => value !== undefined && value !== "" && el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const head = () => {
    const chips = [d.status !== "ONLINE" && d.status, d.usage !== "IN_USE" && d.usage, d.system && "system drive", d.claimed ? "claimed" : "not claimed", d.cordoned && "cordoned"].filter(Boolean);
    return [el("div", { class: "drive-head" },
      el("div", {}, el("h2", { id: "drive-title", tabindex: "-1", "data-key": "drive-title" }, d.name || d.id, " ", badge(d.health)), el("p", { class: "muted" }, [d.model, d.kind, d.size].filter(Boolean).join(" · "))),
      el("button", { type: "button", class: "button close", "aria-label": "Close the drive", "data-key": "close", onclick: close }, "✕")),
    el("p", { class: "chips" }, chips.map((c) => el("span", { class: "chip" }, c)))];
  };
  const facts = () => el("dl", { class: "facts" }, fact("node", more.node), fact("server", more.server), fact("bay", d.bay || "none"), fact("serial", d.serial || "not known"), fact("temperature", d.temperature !== undefined ? `${d.temperature} °C` : ""), fact("wear", d.wear !== undefined ? `${d.wear} %` : ""), fact("power-on hours", d.hours), fact("light", d.light));
  const listed = more.commands?.some((c) => d.next?.includes(c.command)); // it is shown with what it does
  const next = () => (d.steps?.length
    ? section("Replacement", steps(d), after && el("p", {}, el("button", { type: "button", class: "textlink", "data-key": "after", onclick: () => choose(after.id) }, `Show the new drive ${after.name}`)), buttons(d, done), commands(more.commands, done))
    : section("Next", el("p", {}, rich(`${d.does}.`)), d.next && !listed && el("p", {}, rich(d.next)), buttons(d, done), commands(more.commands, done)));
  const why = () => section("Why", d.findings?.length ? el("ul", { class: "plain" }, d.findings.map((f) => finding(f, now)))
    : el("p", {}, d.health === "GOOD" ? "No health rule applies to the drive." : "The health is not known: the drive does not answer, or has not been read yet."));
  const depends = () => section("What depends on it", volumes.length ? el("ul", { class: "plain" }, volumes.map((v) => el("li", {}, el("b", {}, v.name), ` ${v.size}, ${v.kind}, ${v.state}`,
    el("p", { class: "muted" }, v.users?.length ? `used by ${v.users.join(", ")}` : "not mounted"), v.wrong?.map((w) => el("p", { class: "advice" }, rich(w)))))) : el("p", {}, d.uses?.length ? d.uses.join(", ") : "Nothing that drivebay knows of."));
  const history = () => section("History", more.history ? charts(more.history.points) : el("p", { class: "muted" }, more.failed ? "The history cannot be read." : "Loading"));
  const all = [
    cluster && ["down", [more.down], () => (more.down ? el("p", { class: "old" }, `${more.down}: what is shown is old, and a command would be refused.`) : null)],
    ["head", [d.name, d.health, d.status, d.usage, d.claimed, d.cordoned], head],
    ["facts", [more.node, more.server, d.bay, d.serial, d.temperature, d.wear, d.hours, d.light], facts],
    ["next", [d.does, d.next, d.steps, d.actions, after?.id, may(), more.commands], next],
    ["why", [d.findings, d.health, minute], why],
    ["depends", [volumes, d.uses], depends],
    !cluster && ["history", [more.history, more.failed], history],
    !cluster && ["evidence", [more.drive?.evidence, more.drive?.kernel?.state], () => (more.drive ? section("Evidence", evidence(more.drive, now)) : null)],
  ];
  return all.filter(Boolean);
}
