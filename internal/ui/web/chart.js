import { el, svg } from "./dom.js";

const W = 320;
const H = 64;
const PAD = 4;

const series = [
  ["temperature", "Temperature", (v) => `${v} °C`, 10],
  ["percentUsed", "Wear", (v) => `${v} %`, 4],
  ["reallocated", "Reallocated sectors", (v) => `${v}`, 4],
  ["mediaErrors", "Media errors", (v) => `${v}`, 4],
  ["latency", "Latency of requests", (v) => (v >= 1000 ? `${(v / 1000).toFixed(1)} ms` : `${v} µs`), 100],
];

function span(ms) {
  const hours = ms / 3600e3;
  if (hours >= 48) return `${Math.round(hours / 24)} d`;
  if (hours >= 2) return `${Math.round(hours)} h`;
  if (ms >= 120e3) return `${Math.round(ms / 60e3)} min`;
  return `${Math.round(ms / 1000)} s`;
}

// one draws the values of one kind. least is the smallest height of the scale, so that noise stays small.
function one([key, title, text, least], points) {
  const got = points.filter((p) => p[key] !== undefined).map((p) => [Date.parse(p.at), p[key]]);
  if (got.length === 0) return null;
  const values = got.map(([, v]) => v);
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const now = values.at(-1);
  const length = got.at(-1)[0] - got[0][0];
  const said = low === high ? `${text(now)}, unchanged in ${span(length)}` : `now ${text(now)}, between ${text(low)} and ${text(high)} in ${span(length)}`;
  const [from, to] = [low, high];
  if (high - low < least) { const more = (least - (high - low)) / 2; low = Math.max(0, low - more); high = low + Math.max(least, to - low); }
  const x = (t) => PAD + ((t - got[0][0]) / (length || 1)) * (W - 2 * PAD);
  const y = (v) => H - PAD - ((v - low) / (high - low || 1)) * (H - 2 * PAD);
  let path = "";
  const gap = Math.max(3 * 3600e3, length / 8);
  got.forEach(([t, v], i) => { path += `${i && t - got[i - 1][0] < gap ? "L" : "M"}${x(t).toFixed(1)} ${y(v).toFixed(1)}`; });
  const last = got.at(-1);
  return el("figure", { class: "chart" },
    el("figcaption", {}, el("span", {}, title), el("b", {}, text(now))),
    svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${said}`, preserveAspectRatio: "none" },
      svg("path", { class: "grid", d: `M0 ${H - PAD}H${W}M0 ${H / 2}H${W}M0 ${PAD}H${W}` }),
      got.length > 1 && svg("path", { class: "area", d: `${path}L${x(last[0]).toFixed(1)} ${H - PAD}L${x(got[0][0]).toFixed(1)} ${H - PAD}Z` }),
      svg("path", { class: "line", d: got.length > 1 ? path : `M${x(last[0])} ${y(last[1])}h1` })),
    el("p", { class: "chart-range muted" }, el("span", {}, got.length > 1 ? `${span(length)} ago` : "one point so far"), el("span", {}, from === to ? "unchanged" : `${text(from)} to ${text(to)}`), el("span", {}, "now")));
}

// charts draws what was measured of a drive.
export function charts(points) {
  const drawn = series.map((s) => one(s, points)).filter(Boolean);
  return drawn.length ? el("div", { class: "charts" }, drawn) : el("p", { class: "muted" }, "Nothing has been measured yet.");
}
