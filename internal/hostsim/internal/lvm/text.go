package lvm

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The text of a group, in LVM's layout, as far as the daemon reads it: of volumes only what it needs.

// vgcfgbackup writes to a file of the real machine: callers read it there.
func vgcfgbackup(c *command) error {
	g, err := c.groupAndRest(1)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "contents = \"Text Format Volume Group\"\nversion = 1\n\n%s {\n\tid = %q\n\tseqno = %d\n\n\tphysical_volumes {\n", g.name, g.uuid, g.seq)
	names := map[*pv]string{}
	for i, p := range g.pvs {
		names[p] = fmt.Sprintf("pv%d", i)
		fmt.Fprintf(&b, "\n\t\t%s {\n\t\t\tid = %q\n\t\t}\n", names[p], p.uuid)
	}
	b.WriteString("\t}\n\n\tlogical_volumes {\n")
	volume := func(name, id, locked string, pieces ...string) {
		fmt.Fprintf(&b, "\n\t\t%s {\n\t\t\tid = %q\n\t\t\tstatus = [\"READ\"%s]\n", name, id, locked)
		for i, p := range pieces {
			fmt.Fprintf(&b, "\n\t\t\tsegment%d {\n%s\t\t\t}\n", i+1, p)
		}
		b.WriteString("\t\t}\n")
	}
	piece := func(start, n uint64, on string, at uint64) string {
		return fmt.Sprintf("\t\t\t\tstart_extent = %d\n\t\t\t\textent_count = %d\n\n\t\t\t\tstripes = [\n\t\t\t\t\t%q, %d\n\t\t\t\t]\n", start, n, on, at)
	}
	var legs [2][]string
	moved := uint64(0)
	for _, v := range g.lvs {
		var pieces []string
		locked, start := "", uint64(0)
		for _, p := range v.parts() {
			pieces = append(pieces, fmt.Sprintf("\t\t\t\tpart = %q\n", p.name))
		}
		if v.pool != nil {
			pieces = append(pieces, fmt.Sprintf("\t\t\t\tthin_pool = %q\n", v.pool.name))
		}
		for _, a := range v.areas {
			if g.move != nil && g.move.moves(v) && a.pv == g.move.from {
				pieces, locked = append(pieces, piece(start, a.n, "pvmove0", moved)), ", \"LOCKED\""
				legs[0] = append(legs[0], piece(moved, a.n, names[a.pv], a.start))
				moved += a.n
			} else {
				pieces = append(pieces, piece(start, a.n, names[a.pv], a.start))
			}
			start += a.n
		}
		volume(v.name, v.uuid, locked, pieces...)
	}
	if x := g.move; x != nil {
		at := uint64(0)
		for _, a := range x.to {
			legs[1] = append(legs[1], piece(at, a.n, names[a.pv], a.start))
			at += a.n
		}
		volume("pvmove0", x.uuid, ", \"LOCKED\"", "\t\t\t\tmirrors = [\n\t\t\t\t\t\"pvmove0_mimage_0\", 0,\n\t\t\t\t\t\"pvmove0_mimage_1\", 0\n\t\t\t\t]\n")
		volume("pvmove0_mimage_0", x.legs[0], "", legs[0]...)
		volume("pvmove0_mimage_1", x.legs[1], "", legs[1]...)
	}
	b.WriteString("\t}\n}\n")
	if err := os.WriteFile(c.Set["file"], []byte(b.String()), 0o600); err != nil {
		return said("%v", err)
	}
	return nil
}

// vgcfgrestore restores a text that holds less than the real one.
func vgcfgrestore(c *command) error {
	g, err := c.groupAndRest(1)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(c.Set["file"])
	if err != nil {
		return said("%v", err)
	}
	has := func(indent, name string) bool { return strings.Contains(string(b), "\n"+indent+name+" {\n") }
	id := func(uuid string) bool { return strings.Contains(string(b), fmt.Sprintf("\t\t\tid = %q\n", uuid)) }
	for _, p := range g.pvs {
		if id(p.uuid) && c.missing(p) {
			return said("Cannot restore Volume Group %s with 1 PVs marked as missing.\nRestore failed.", g.name)
		}
	}
	if pools := slices.ContainsFunc(g.lvs, func(v *lv) bool { return v.kind == "thin-pool" && has("\t\t", v.name) }); pools && !c.Has("force") {
		return said("Consider using option --force to restore Volume Group %s with thin volumes.\nRestore failed.", g.name)
	}
	for _, v := range slices.Clone(g.lvs) {
		if has("\t\t", v.name) {
			continue
		}
		if v.dev != nil {
			return said("%s is active, and a test wants it not to be", v.path())
		}
		g.lvs = slices.DeleteFunc(g.lvs, func(x *lv) bool { return x == v })
	}
	if strings.Contains(string(b), "pvmove0") != has("\t\t", "pvmove0") {
		return said("Couldn't find volume 'pvmove0' for segment of volume group %s.", g.name)
	}
	if !has("\t\t", "pvmove0") {
		g.move = nil
	}
	for _, p := range slices.Clone(g.pvs) {
		if !id(p.uuid) {
			c.part(g, p)
		}
	}
	return c.commit(g)
}
