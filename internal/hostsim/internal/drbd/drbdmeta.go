package drbd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"

	api "github.com/drivebay/drivebay/internal/drbd"
)

// Programs returns those that the machine has because of DRBD. rm and tee know the files of drbdmeta only.
func (s *System) Programs() map[string]program.Program {
	return map[string]program.Program{"drbdmeta": s.drbdmeta, "modprobe": s.modprobe, "rm": s.remove, "tee": s.tee}
}

func (s *System) modprobe(p *program.Process) int {
	if len(p.Argv) < 2 || p.Argv[1] != "drbd" || s.devices.Lacks("drbd") {
		return p.Fail(1, "modprobe: FATAL: Module %s not found in directory /lib/modules/6.1.0", p.Argv[len(p.Argv)-1])
	}
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	s.loaded = true
	return 0
}

func (s *System) remove(p *program.Process) int {
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	if len(p.Argv) != 3 || p.Argv[1] != "-f" || !strings.HasPrefix(p.Argv[2], "/var/lib/drbd/") {
		return p.Fail(1, "rm: cannot remove %q", p.Argv)
	}
	delete(s.files, p.Argv[2])
	return 0
}

func (s *System) tee(p *program.Process) int {
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	if len(p.Argv) != 2 || !strings.HasPrefix(p.Argv[1], "/var/lib/drbd/") {
		return p.Fail(1, "tee: %q", p.Argv)
	}
	s.files[p.Argv[1]] = string(p.Input)
	return 0
}

// drbdmeta runs drbdmeta(8) 9.22 with --force, on metadata at the end of the disk.
func (s *System) drbdmeta(p *program.Process) int {
	a := p.Argv
	if len(a) != 7 || a[1] != "--force" || a[3] != "v08" || a[5] != "internal" {
		return p.Fail(20, "drbdmeta: USAGE: drbdmeta [--force] <minor> <format> <device> <index> <command>")
	}
	minor, err := strconv.ParseUint(a[2], 10, 32)
	d := p.Device(a[4])
	if err != nil || d == nil {
		return p.Fail(20, "open(%s) failed: No such file or directory", a[4])
	}
	code := 0
	err = d.Do(p.Ctx, block.Access{Write: true, Off: d.Length() - superBytes, N: superBytes}, func() error {
		if r := s.ofMinor(uint32(minor)); r != nil && r.below != nil {
			code = p.Fail(20, "Device '%d' is configured!", minor)
			return nil
		}
		if d.Busy() {
			p.Complain("open(%s) failed: Device or resource busy\n\nExclusive open failed. Do it anyways?\n*** confirmation forced via --force option ***", a[4])
		}
		code = s.meta(p, d, a[6], api.LastKnown(uint32(minor)))
		return nil
	})
	if err != nil {
		return p.Fail(20, "%s: %s", a[4], program.Reason(err))
	}
	return code
}

func (s *System) meta(p *program.Process, d *block.Device, command, known string) int {
	size := d.Length()
	if command == "create-md" {
		return s.create(p, d, known)
	}
	m, ok := readSuperblock(d, size)
	if before, err := strconv.ParseUint(strings.TrimSpace(s.files[known]), 10, 64); !ok && err == nil && before < size {
		if m, ok = readSuperblock(d, before); ok {
			if moveMetadata(d, before, size) != nil || d.Zero(before-superBytes, superBytes) != nil {
				return p.Fail(20, "write failed")
			}
			p.Say("Moving the internal meta data to its proper location")
		}
	}
	if !ok {
		return p.Fail(1, "No valid meta data found")
	}
	switch command {
	case "apply-al":
		m.clean = true
		if d.Write(m.encode(), size-superBytes) != nil {
			return p.Fail(20, "write failed")
		}
	case "wipe-md":
		if d.Zero(size-superBytes, superBytes) != nil {
			return p.Fail(20, "write failed")
		}
		delete(s.files, known)
		return 0
	default:
		return p.Fail(20, "unknown command '%s'.", command)
	}
	if s.files[known] != "" { // it keeps the file of a disk that it knew
		s.files[known] = fmt.Sprintln(size)
	}
	return 0
}

func (s *System) create(p *program.Process, d *block.Device, known string) int {
	size := d.Length()
	if size < 68<<10 {
		return p.Fail(20, "Device %s is too small", d.Name)
	}
	if fs, is := content.ReadSuper(d.Read); is && fs.Kind != "btrfs" && fs.Size > bitmapAt(size) {
		return p.Fail(40, "Device size would be truncated, which\nwould corrupt data and result in\n'access beyond end of device' errors.\nOperation refused.")
	}
	m := superblock{uuids: [4]uint64{justCreated}, clean: true}
	if d.Zero(bitmapAt(size), api.MetadataBytes(size)) != nil || d.Write(m.encode(), size-superBytes) != nil {
		return p.Fail(20, "write failed")
	}
	s.files[known] = fmt.Sprintln(size)
	return 0
}
