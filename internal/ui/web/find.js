// What a person looks for, and whether a drive is that.

const fields = {
  node: (d) => [d.node], bay: (d) => [d.bay, d.enclosure], serial: (d) => [d.serial], model: (d) => [d.model, d.kind, d.size], volume: (d) => d.volumes,
  reason: (d) => [...(d.codes ?? []), d.why], health: (d) => [d.health, d.gone && "OFFLINE"],
};
const lower = (list) => (list ?? []).filter(Boolean).join("\n").toLowerCase();

// known returns a drive with the texts that it is found by.
export function known(drive, node, enclosure) {
  const d = { ...drive, node, enclosure };
  d.text = Object.fromEntries(Object.entries(fields).map(([name, of]) => [name, lower(of(d))]));
  d.text.all = lower([...Object.values(d.text), d.id, d.name, d.mark]);
  return d;
}

// query returns a function that tells whether a drive matches a text and one of the healths; none: all do. A node or
// a bay that has exactly the name that is given is found alone.
export function query(text, healths, drives) {
  const terms = (text.toLowerCase().match(/[^\s"]*"[^"]*"?|\S+/g) ?? []).map((word) => {
    const [, field, value] = word.match(/^([a-z]+):(.*)$/) ?? [];
    const known = Object.hasOwn(fields, field ?? "");
    const what = (known ? value : word).replaceAll('"', "");
    const name = known ? field : "all";
    const exact = (name === "node" || name === "bay") && what && drives.some((d) => d.text[name].split("\n")[0] === what);
    return (d) => (exact ? d.text[name].split("\n")[0] === what : d.text[name].includes(what));
  });
  return (d) => (!healths.size || healths.has(d.gone ? "OFFLINE" : d.health)) && terms.every((t) => t(d));
}
