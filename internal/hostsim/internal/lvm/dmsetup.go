package lvm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// Dmsetup runs dmsetup(8) as far as the daemon uses it: the status of mirrors and moves, and the
// tables of moves.
func (s *State) Dmsetup(p *program.Process) int {
	verbs := map[string]func(*program.Process, *relocation) int{"status": moveStatus, "table": moveTable, "load": loadMove, "resume": resumeMove}
	var words []string
	for _, w := range p.Argv[1:] {
		if !strings.HasPrefix(w, "--") {
			words = append(words, w)
		}
	}
	if len(words) < 2 || verbs[words[0]] == nil {
		return p.Fail(1, "Unknown command.")
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, one := range s.physical {
		g := one.group
		if g == nil {
			continue
		}
		if x := g.move; x != nil && !x.since.IsZero() && words[1] == mapperName(g.name, "pvmove0") {
			c := &scan{Process: p, m: s, on: s.labelled()}
			c.look(g, x)
			return verbs[words[0]](p, x)
		}
		for _, v := range g.lvs {
			if v.kind == "raid1" && v.dev != nil && words[0] == "status" && words[1] == mapperName(g.name, v.name) {
				sectors := g.extent / 512
				action, healthy := "idle", "AD"
				if v.recovered() < v.extents {
					action = "recover"
				}
				p.Say("0 %d raid raid1 %d %s %d/%d %s 0 0 -", v.extents*sectors, len(v.images), legs(healthy, v.failed), v.recovered()*sectors, v.extents*sectors, action)
				return 0
			}
		}
	}
	if words[0] == "status" {
		return p.Fail(1, "Device does not exist.\nCommand failed.")
	}
	return p.Fail(1, "device-mapper: %s ioctl on %s  failed: No such device or address\nCommand failed.", words[0], words[1])
}

func (x *relocation) sectors() uint64 { return x.total * x.from.group.extent / 512 }

func moveStatus(p *program.Process, x *relocation) int {
	if x.retreated() {
		p.Say("0 %d linear ", x.sectors())
	} else {
		p.Say("0 %d mirror 2 253:90 253:91 %d/%d 1 %s 1 core ", x.sectors(), x.done, x.total, legs("AS", x.failed[:]))
	}
	return 0
}

func moveTable(p *program.Process, x *relocation) int {
	p.Say("0 %d %s", x.sectors(), x.target())
	return 0
}

// mirrored is the table that LVM loads for a move.
const mirrored = "mirror core 1 4096 2 253:90 0 253:91 0"

// target returns the active table of the move.
func (x *relocation) target() string {
	if x.table == "" {
		return mirrored
	}
	return x.table
}

// retreated reports whether all I/O goes to the extents that the volumes move from.
func (x *relocation) retreated() bool { return x.table == "linear 253:90 0" }

func loadMove(p *program.Process, x *relocation) int {
	at := slices.Index(p.Argv, "--table")
	if at < 0 || at+1 == len(p.Argv) {
		return p.Fail(1, "Missing table.")
	}
	loaded, whole := strings.CutPrefix(p.Argv[at+1], fmt.Sprintf("0 %d ", x.sectors()))
	if !whole || !slices.Contains([]string{mirrored, mirrored + " 1 handle_errors", "linear 253:90 0"}, loaded) {
		return p.Fail(1, "device-mapper: reload ioctl on pvmove0 failed: Invalid argument")
	}
	x.loaded = loaded
	return 0
}

func resumeMove(p *program.Process, x *relocation) int {
	if x.loaded != "" {
		x.begin(x.loaded, p.Devices.Clock.Now())
	}
	return 0
}

// begin activates a table of the move. The copy starts over, because its progress is only in memory.
func (x *relocation) begin(table string, now time.Time) {
	x.table, x.loaded = table, ""
	x.since, x.done, x.failed = now, 0, [2]bool{}
}

// legs returns one letter per leg: letters[0] for a sound one, letters[1] for a failed one.
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

// labelled returns the devices of physical volumes, by UUID.
func (s *State) labelled() map[string]*block.Device {
	on := map[string]*block.Device{}
	for _, d := range s.Blocks {
		b := make([]byte, 512)
		if d.Gone || d.Mapped != nil || d.Length() < 1024 {
			continue
		}
		if d.Read(b, 512); string(b[:8]) == "LABELONE" && plainID(b[32:64]) {
			on[dashed(string(b[32:64]))] = d
		}
	}
	return on
}
