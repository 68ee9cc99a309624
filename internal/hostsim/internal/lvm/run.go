package lvm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// lvm(8) of lvm2 2.03.16: its commands as far as package lvm uses them, with its messages and exit
// statuses.

// command is an lvm command in progress.
type command struct {
	*scan
	command string
	points  int // points left until it is killed; 0: it is not
	undo    func()
}

// commandRow is a command: its options (a colon marks a value) and its function.
type commandRow struct {
	options string
	do      func(*command) error
}

const (
	failed = 5 // ECMD_FAILED
	usage  = 3 // EINVALID_CMD_LINE
	ofAll  = "config: devices: yes force quiet verbose test nolocking noudevsync nohints commandprofile: "
)

// commands is filled by init because some commands refer back to it.
var commands map[string]commandRow

func init() {
	commands = map[string]commandRow{
		"pvcreate":     {"uuid: norestorefile restorefile: metadatasize: dataalignment: zero: metadatacopies:", pvcreate},
		"pvremove":     {"", pvremove},
		"pvmove":       {"atomic interval: abort background name: noudevsync alloc:", pvmove},
		"vgcreate":     {"setautoactivation: physicalextentsize: addtag: metadatasize: dataalignment: systemid: zero: maxlogicalvolumes: alloc:", vgcreate},
		"vgextend":     {"restoremissing metadatasize: dataalignment: zero:", vgextend},
		"vgreduce":     {"removemissing mirrorsonly all", vgreduce},
		"vgcfgbackup":  {"file:", vgcfgbackup},
		"vgcfgrestore": {"file:", vgcfgrestore},
		"vgremove":     {"", vgremove},
		"vgexport":     {"", vgexport},
		"vgimport":     {"", vgexport},
		"vgchange":     {"addtag: deltag: setautoactivation:", vgchange},
		"lvcreate":     {"name: type: size: extents: virtualsize: addtag: wipesignatures: zero: mirrors: nosync poolmetadatasize: poolmetadataspare: chunksize: discards: errorwhenfull: thinpool: snapshot permission: setactivationskip: ignoreactivationskip activate: setautoactivation: alloc:", lvcreate},
		"lvremove":     {"", lvremove},
		"lvchange":     {"activate: activationmode: ignoreactivationskip refresh addtag: deltag: errorwhenfull: zero: permission: setactivationskip: setautoactivation: monitor:", lvchange},
		"lvextend":     {"size: extents: poolmetadatasize: alloc: nofsck", lvextend},
		"lvreduce":     {"size: nofsck", lvreduce},
		"lvconvert":    {"repair replace: mirrors: type: cachevol: cachemode: uncache", lvconvert},
		"version":      {"", version},
		"fullreport":   {"all reportformat: units: nosuffix configreport: options:", fullreport},
	}
}

// shortNames maps the letters of short options to the long ones.
var shortNames = map[string]string{"n": "name", "L": "size", "l": "extents", "V": "virtualsize", "W": "wipesignatures", "Z": "zero", "m": "mirrors", "s": "snapshot",
	"p": "permission", "k": "setactivationskip", "K": "ignoreactivationskip", "a": "activate", "y": "yes", "f": "force", "q": "quiet", "v": "verbose", "i": "interval",
	"b": "background", "o": "options", "u": "uuid", "t": "test"}

// complaint is an error of an lvm command, in LVM's words.
type complaint struct {
	text  string
	words bool // the arguments are invalid
}

func (c *complaint) Error() string { return c.text }

func said(format string, args ...any) error {
	return &complaint{text: fmt.Sprintf(format, args...)}
}

func misused(format string, args ...any) error {
	return &complaint{fmt.Sprintf(format, args...) + "\n  Error during parsing of command line.", true}
}

var errKilled = errors.New("killed")

// Run runs lvm(8).
func (s *State) Run(p *program.Process) int {
	if len(p.Argv) < 2 || commands[p.Argv[1]].do == nil {
		return p.Fail(2, "  No such command '%s'.  Try 'help'.", strings.Join(p.Argv[1:], " "))
	}
	c := &command{scan: newScan(s, p), command: p.Argv[1]}
	err := c.parse(p.Argv[2:])
	if err == nil {
		if c.command != "version" {
			c.readLabels()
		}
		s.Mu.Lock()
		c.points, s.kill = s.kill, 0
		if c.command != "version" && c.command != "fullreport" {
			c.undo = s.undo()
		}
		err = commands[c.command].do(c)
		c.forgetNamed()
		s.Mu.Unlock()
		if long, ok := errors.AsType[*carryOn](err); ok {
			err = long.work()
		}
	}
	switch why, _ := errors.AsType[*complaint](err); {
	case err == nil:
		return 0
	case errors.Is(err, errKilled):
		p.Killed = true
	case why != nil && why.words:
		return p.Fail(usage, "  %s: %v", c.command, err)
	default:
		for line := range strings.Lines(err.Error()) {
			p.Complain("  %s", strings.TrimRight(line, "\n"))
		}
	}
	return failed
}

// version reads no device. LVM prints the driver's line only where there is a driver.
func version(c *command) error {
	c.Say("  LVM version:     2.03.16(2) (2022-05-18)")
	c.Say("  Library version: 1.02.185 (2022-05-18)")
	c.Say("  Driver version:  4.47.0")
	return nil
}

// carryOn is the rest of a command, which must run without the lock.
type carryOn struct{ work func() error }

func (*carryOn) Error() string { return "to be carried on" }

// parse parses the arguments of a command.
func (c *command) parse(args []string) error {
	long := strings.Fields(ofAll + commands[c.command].options)
	short := ""
	for letter, name := range shortNames {
		switch {
		case c.command == "fullreport" && letter == "a":
			short += "a"
		case slices.Contains(long, name+":"):
			short += letter + ":"
		case slices.Contains(long, name):
			short += letter
		}
	}
	f, err := program.Getopt(args, short, long...)
	if err != nil {
		return misused("%v", err)
	}
	for letter, values := range f.All {
		if name := shortNames[letter]; name != "" {
			f.Set[name], f.All[name] = f.Set[letter], append(f.All[name], values...)
		}
	}
	c.Flags = f
	return nil
}

// complete refuses to change a group with a missing physical volume.
func (c *scan) complete(g *group) error {
	if slices.ContainsFunc(g.pvs, c.missing) {
		return said("Cannot change VG %s while PVs are missing.\nConsider vgreduce --removemissing.\nCannot process volume group %s", g.name, g.name)
	}
	return nil
}

// commit writes the metadata to all present physical volumes. The others are outdated from now on and
// marked missing.
func (c *command) commit(g *group) error {
	if slices.ContainsFunc(g.pvs, func(p *pv) bool { return c.twice[p.uuid] }) {
		return said("Cannot update volume group %s with duplicate PV devices.", g.name)
	}
	for _, p := range g.pvs {
		dev := c.on[p.uuid]
		if dev == nil {
			continue
		}
		if _, err := dev.Ask(block.Access{Write: true, N: 4096}); err != nil {
			if c.undo != nil {
				c.undo()
			}
			return said("Error writing device /dev/%s at 4096 length 4096.\nFailed to write VG %s.", dev.Name, g.name)
		}
	}
	g.seq++
	for _, p := range g.pvs {
		dev := c.on[p.uuid]
		if dev == nil {
			p.missing = true
			continue
		}
		if c.unread[p.uuid] { // vgck --updatemetadata would write it
			continue
		}
		if err := c.writeMetadata(dev, g); err != nil {
			return err
		}
		p.hint = dev.Name
	}
	return c.point()
}

// point is a point where a test can kill the command.
func (c *command) point() error {
	if c.points--; c.points == 0 {
		return errKilled
	}
	return nil
}

// KillNext kills the next lvm command at its nth point: after it committed metadata, activated or
// wiped something.
func (s *State) KillNext(n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.kill = n
}

// zero writes zeros to a range of a device, if the drives below allow it.
func (c *command) zero(dev *block.Device, off, n uint64) error {
	if _, err := dev.Ask(block.Access{Write: true, Off: off, N: n}); err != nil {
		if errors.Is(err, host.ErrGone) {
			return said("Couldn't find device /dev/%s.", dev.Name)
		}
		return said("Error writing device /dev/%s at %d length %d.", dev.Name, off, n)
	}
	return dev.Zero(off, n)
}
