package lvm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The report: every field that package lvm requests, as lvm2 2.03.16 fills it in (lvmreport(7)). All
// values are strings.

type fields map[string]string

// report makes the rows of a report from a scan.
type report struct{ *scan }

// fullreport prints a section for each group, and one for the rest.
func fullreport(c *command) error {
	if c.Set["reportformat"] != "json" || c.Set["units"] != "b" || !c.Has("nosuffix") {
		return misused("The simulated lvm reports in JSON and bytes only.")
	}
	parts, columns := c.All["configreport"], c.All["options"]
	if len(parts) != len(columns) {
		return misused("Option -o goes with --configreport.")
	}
	text := []byte("{\n        \"report\": [")
	var err error
	add := func(rows map[string][]fields) {
		if err == nil {
			text, err = appendSection(text, parts, columns, rows)
		}
	}
	r := report{c.scan}
	for _, g := range c.groups() {
		add(r.section(g))
	}
	if free := r.orphans(); len(free) > 0 {
		add(map[string][]fields{"pv": free})
	}
	if err != nil {
		return err
	}
	if text[len(text)-1] != '[' {
		text = append(text, "\n        "...)
	}
	text = append(text, "]\n    }"...)
	if c.again { // on a separate line, inside the report (seen with 2.03.16)
		text = bytes.Replace(text, []byte("[\n"), []byte("[\nRetrying metadata scan.\n"), 1)
	}
	c.Say("    %s", text)
	return nil
}

// appendSection appends a section in the layout of lvm2: the parts by name, and of each row the requested
// columns in their order.
func appendSection(b []byte, parts, columns []string, rows map[string][]fields) ([]byte, error) {
	const deep = "\n            "
	of := map[string]string{}
	for i, part := range parts {
		of[part] = columns[i]
	}
	b = append(separate(b, '['), deep+"{"...)
	for _, part := range slices.Sorted(maps.Keys(of)) {
		b = append(separate(b, '{'), deep+"    "...)
		b = append(appendJSON(b, part), ": ["...)
		names := strings.Split(of[part], ",")
		for _, row := range rows[part] {
			b = append(separate(b, '['), deep+"        {"...)
			for _, name := range names {
				value, ok := row[name]
				if !ok {
					return nil, misused("Unrecognised field: %s", name)
				}
				b = append(separate(b, '{'), deep+"            "...)
				b = appendJSON(append(appendJSON(b, name), ": "...), value)
			}
			b = append(b, deep+"        }"...)
		}
		if len(rows[part]) > 0 {
			b = append(b, deep+"    "...)
		}
		b = append(b, ']')
	}
	return append(b, deep+"}"...), nil
}

// separate appends a comma unless the bytes end with the bracket that opens the list.
func separate(b []byte, open byte) []byte {
	if b[len(b)-1] != open {
		b = append(b, ',')
	}
	return b
}

// appendJSON appends a string as encoding/json writes it.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7F || strings.IndexByte(`"\<>&`, c) >= 0 {
			text, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string can always be encoded
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func (c report) section(g *group) map[string][]fields {
	rows := map[string][]fields{"vg": {c.groupFields(g)}}
	lvs := slices.SortedFunc(slices.Values(g.lvs), func(a, b *lv) int { return cmp.Compare(a.name, b.name) })
	for _, v := range lvs {
		rows["lv"] = append(rows["lv"], c.lvFields(v))
		rows["seg"] = append(rows["seg"], c.segments(v)...)
	}
	if g.move != nil {
		c.look(g, g.move)
		rows["lv"] = append(rows["lv"], g.move.fields()...)
		rows["seg"] = append(rows["seg"], c.moveSegments(g.move)...)
	}
	for _, p := range g.pvs {
		rows["pv"] = append(rows["pv"], c.pvFields(p))
		rows["pvseg"] = append(rows["pvseg"], c.extentFields(p)...)
	}
	return rows
}

func (c report) groupFields(g *group) fields {
	var all uint64
	partial := ""
	for _, p := range g.pvs {
		all += p.extents()
		if c.missing(p) {
			partial = "partial"
		}
	}
	auto := ""
	if g.auto {
		auto = "enabled"
	}
	free := g.room(g.pvs)
	return fields{"vg_uuid": g.uuid, "vg_name": g.name, "vg_size": fmt.Sprint(all * g.extent), "vg_free": fmt.Sprint(free * g.extent), "vg_extent_size": fmt.Sprint(g.extent),
		"vg_free_count": fmt.Sprint(free), "vg_mda_free": fmt.Sprint(8<<20 + 512<<10 - 512*len(g.lvs)), "vg_seqno": fmt.Sprint(g.seq), "vg_systemid": "",
		"vg_tags": strings.Join(g.tags, ","), "vg_partial": partial, "vg_autoactivation": auto, "vg_exported": map[bool]string{true: "exported"}[g.exported]}
}

func (c report) pvFields(p *pv) fields {
	f := fields{"pv_uuid": p.uuid, "pv_name": "[unknown]", "dev_size": "0", "pe_start": fmt.Sprint(p.start), "pv_missing": "", "pv_allocatable": "", "pv_duplicate": "", "pv_tags": "", "pv_in_use": "", "pv_mda_count": "0"}
	if dev := c.on[p.uuid]; dev != nil {
		f["pv_name"], f["dev_size"] = "/dev/"+dev.Name, fmt.Sprint(dev.Length())
		if !c.unread[p.uuid] {
			f["pv_mda_count"] = "1"
		}
	}
	size, free := p.size, p.size
	switch g := p.group; {
	case g == nil:
	case !slices.Contains(c.groups(), g): // in use, but the group is unknown
		f["pv_in_use"], free = "used", 0
	default:
		f["pv_in_use"] = "used"
		size, free = p.extents()*g.extent, extentsOf(g.free(p))*g.extent
		f["pv_allocatable"] = "allocatable"
		if c.missing(p) {
			f["pv_missing"] = "missing"
		}
	}
	f["pv_size"], f["pv_free"] = fmt.Sprint(size), fmt.Sprint(free)
	return f
}

// orphans returns the physical volumes without a group.
func (c report) orphans() (rows []fields) {
	for id := range c.on {
		if p := c.m.physical[id]; p.group == nil || !slices.Contains(c.groups(), p.group) {
			rows = append(rows, c.pvFields(p))
		}
	}
	slices.SortFunc(rows, func(a, b fields) int { return cmp.Compare(a["pv_name"], b["pv_name"]) })
	return rows
}

// extentFields returns the owners of the extents of a physical volume.
func (c report) extentFields(p *pv) (rows []fields) {
	g := p.group
	type owned struct {
		area
		by string
	}
	var list []owned
	for _, v := range g.lvs {
		for _, a := range v.areas {
			by := v.uuid
			if g.move != nil && a.pv == g.move.from && g.move.moves(v) {
				by = g.move.legs[0]
			}
			list = append(list, owned{a, by})
		}
	}
	if g.move != nil {
		for _, a := range g.move.to {
			list = append(list, owned{a, g.move.legs[1]})
		}
	}
	for _, a := range g.free(p) {
		list = append(list, owned{a, ""})
	}
	list = slices.DeleteFunc(list, func(o owned) bool { return o.pv != p })
	slices.SortFunc(list, func(a, b owned) int { return cmp.Compare(a.start, b.start) })
	for _, o := range list {
		rows = append(rows, fields{"pv_uuid": p.uuid, "lv_uuid": o.by, "pvseg_start": fmt.Sprint(o.start), "pvseg_size": fmt.Sprint(o.n)})
	}
	return rows
}

func segment(uuid, kind string, start, n uint64, on ...string) fields {
	stripes := max(len(on), 1)
	if kind == "thin" {
		stripes = 0
	}
	return fields{"lv_uuid": uuid, "segtype": kind, "seg_start_pe": fmt.Sprint(start), "seg_size_pe": fmt.Sprint(n), "stripes": fmt.Sprint(stripes), "devices": strings.Join(on, ",")}
}

func (c report) segments(v *lv) []fields {
	switch v.kind {
	case "raid1":
		var on []string
		for _, x := range v.images {
			on = append(on, x.name+"(0)")
		}
		return []fields{segment(v.uuid, "raid1", 0, v.extents, on...)}
	case "thin-pool":
		return []fields{segment(v.uuid, "thin-pool", 0, v.extents, v.data.name+"(0)")}
	case "thin":
		return []fields{segment(v.uuid, "thin", 0, v.extents)}
	}
	var rows []fields
	at, moved := uint64(0), uint64(0)
	for _, a := range v.areas {
		on := fmt.Sprintf("%s(%d)", c.pvFields(a.pv)["pv_name"], a.start)
		if x := v.group.move; x != nil && a.pv == x.from && x.moves(v) {
			on = fmt.Sprintf("pvmove0(%d)", moved)
			moved += a.n
		}
		rows = append(rows, segment(v.uuid, map[bool]string{true: "cache", false: "linear"}[v.cached], at, a.n, on))
		at += a.n
	}
	return rows
}
