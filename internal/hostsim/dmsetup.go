package hostsim

import "strings"

// dmsetup is dmsetup(8), as far as we ask it: the status of what has legs.
func dmsetup(p *process) int {
	if len(p.argv) != 3 || p.argv[1] != "status" {
		return p.fail(1, "Unknown command.")
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	for _, one := range p.m.physical {
		g := one.group
		if g == nil {
			continue
		}
		if x := g.move; x != nil && !x.since.IsZero() && p.argv[2] == mapperName(g.name, "pvmove0") {
			c := &lvmRun{process: p, on: p.m.labelled()}
			c.look(g, x)
			p.say("0 %d mirror 2 253:90 253:91 %d/%d 1 %s 1 core ", x.total*g.extent/512, x.done, x.total, legs("AS", x.failed[:]))
			return 0
		}
		for _, v := range g.lvs {
			if v.kind == "raid1" && v.dev != nil && p.argv[2] == mapperName(g.name, v.name) {
				sectors := g.extent / 512
				action, healthy := "idle", "AD"
				if v.recovered() < v.extents {
					action = "recover"
				}
				p.say("0 %d raid raid1 %d %s %d/%d %s 0 0 -", v.extents*sectors, len(v.images), legs(healthy, v.failed), v.recovered()*sectors, v.extents*sectors, action)
				return 0
			}
		}
	}
	return p.fail(1, "Device %s not found\nCommand failed.", p.argv[2])
}

// legs are their letters: that of one that is sound, and of one that failed.
func legs(letters string, failed []bool) string {
	var b strings.Builder
	for _, f := range failed {
		if f {
			b.WriteByte(letters[1])
		} else {
			b.WriteByte(letters[0])
		}
	}
	return b.String()
}

// labelled are the devices of physical volumes, by identity.
func (m *Machine) labelled() map[string]*device {
	on := map[string]*device{}
	for _, d := range m.devices {
		b := make([]byte, 512)
		if d.gone || d.mapped != nil || d.length() < 1024 {
			continue
		}
		if d.read(b, 512); string(b[:8]) == "LABELONE" && plainID(b[32:64]) {
			on[dashed(string(b[32:64]))] = d
		}
	}
	return on
}
