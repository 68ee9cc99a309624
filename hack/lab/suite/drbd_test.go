//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/drbd/drbdtest"
)

const (
	drbdSecret = drbdtest.Right
	drbdSize   = drbdtest.Bytes
)

// drbdSite is one side of a replicated disk: DISK holds the data and the metadata, /dev/drbd7 is the device.
type drbdSite struct {
	*lab.Machine
	t             *testing.T
	program       string
	local, remote string
	disk          string
}

func newDRBDSite(t *testing.T, cable *machine.Link, end int) *drbdSite {
	return newDRBDSiteOf(t, cable, end, drbd.DiskFor(drbdSize, 1<<20))
}

func newDRBDSiteOf(t *testing.T, cable *machine.Link, end int, disk uint64) *drbdSite {
	data := scsi("DISK", 0x5000c500b0000000)
	data.Size = int64(disk)
	s := &drbdSite{Machine: lab.Start(t, machine.Spec{Link: cable, Drives: []machine.Drive{data}}), t: t,
		local: fmt.Sprintf("10.77.0.%d:7789", end), remote: fmt.Sprintf("10.77.0.%d:7789", 3-end)}
	s.program = s.Program("./hack/lab/drbd")
	s.disk = "/dev/" + s.Name("DISK")
	s.refused(10, "list")
	s.Sh("modprobe drbd usermode_helper=/bin/true")
	return s
}

// do runs a verb of the program; SECRET comes by the environment, as the daemon has it in memory.
func (s *drbdSite) do(verb string, args ...any) string {
	s.t.Helper()
	return s.Sh("SECRET=%s %s %s %s", drbdSecret, s.program, verb, strings.TrimSpace(fmt.Sprintln(args...)))
}

// refused wants a verb to fail with the exit status of an error class.
func (s *drbdSite) refused(status int, verb string, args ...any) {
	s.t.Helper()
	out := s.Output(fmt.Sprintf("SECRET=%s %s %s %s >/tmp/out 2>&1; echo $?; cat /tmp/out", drbdSecret, s.program, verb, strings.TrimSpace(fmt.Sprintln(args...))))
	if first, _, _ := strings.Cut(out, "\n"); first != fmt.Sprint(status) {
		s.t.Errorf("%s %v: want exit status %d: %s", verb, args, status, out)
	}
}

// command runs drbdmeta, which forgets the size that the disk had before.
func (s *drbdSite) command(argv []string) {
	s.t.Helper()
	s.Sh("rm -f %s; %s", drbd.LastKnown(7), strings.Join(argv, " "))
}

func (s *drbdSite) attach() {
	s.t.Helper()
	s.command(drbd.ApplyActivityLog(7, s.disk))
	s.do("attach", s.disk, drbdSize)
}

func (s *drbdSite) status() (x drbd.Status) {
	s.t.Helper()
	s.Must(json.Unmarshal([]byte(s.do("status")), &x))
	return x
}

func (s *drbdSite) metadata() (x drbd.Metadata) {
	s.t.Helper()
	s.Must(json.Unmarshal([]byte(s.do("metadata", s.disk)), &x))
	return x
}

func (s *drbdSite) until(what string, ok func(drbd.Status) bool) drbd.Status {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		x := s.status()
		if ok(x) {
			return x
		}
		if time.Now().After(end) {
			s.t.Fatalf("not %s: %+v\n%s", what, x, s.Output("dmesg | grep drbd | tail -40"))
		}
	}
}

func inSync(x drbd.Status) bool {
	return x.State.Connection == drbd.Connected && x.State.Disk == drbd.UpToDate && x.State.PeerDisk == drbd.UpToDate
}

// content is the checksum of the first 4 MiB of a device.
func (s *drbdSite) content(device string) string {
	s.t.Helper()
	return s.Sh("dd if=%s bs=1M count=4 iflag=direct status=none | md5sum", device)
}

// data is the checksum of what the device shows of a disk.
func (s *drbdSite) data(device string) string {
	s.t.Helper()
	return s.Sh("dd if=%s bs=4k count=%d iflag=direct status=none | md5sum", device, drbdSize/4096)
}

// TestLabDRBDBitmap: at an attach the kernel forgets that the last 256 KiB of a disk differ from the peer when the
// size is a multiple of 256 KiB. Once it does not any more, drbd.ValidSize can go.
func TestLabDRBDBitmap(t *testing.T) {
	t.Parallel()
	s := newDRBDSite(t, nil, 1)
	s.command(drbd.CreateMetadata(7, s.disk))
	s.command(drbd.ApplyActivityLog(7, s.disk))
	s.do("new")
	s.refused(1, "attach", s.disk, 96<<20)
	s.Sh("drbdsetup attach 7 %s %[1]s internal --size=%ds", s.disk, 96<<20/512)
	if x := s.status(); x.Bytes != 96<<20 || x.OutOfSync != x.Bytes-256<<10 {
		t.Errorf("a new disk of 96 MiB: %+v", x)
	}
	s.do("down")
	s.command(drbd.CreateMetadata(7, s.disk))
	s.do("new")
	s.attach()
	if x := s.status(); x.Bytes != drbdSize || x.OutOfSync != drbdSize {
		t.Errorf("a new disk of 96 MiB and 4 KiB: %+v", x)
	}
}

// TestLabDRBDCases runs the cases that the simulated kernel runs (TestDRBD of package hostsim).
func TestLabDRBDCases(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	a, b := newDRBDSite(t, cable, 1), newDRBDSite(t, cable, 2)
	drbdtest.Run(t, drbdKernel{a}, drbdKernel{b}, [2]netip.AddrPort{netip.MustParseAddrPort(a.local), netip.MustParseAddrPort(b.local)},
		func(up bool) { a.Must(a.SetLink(t.Context(), up)) })
}

// TestLabDRBD: two machines and a disk with a file system on the first one: full copy in the direction that the operator
// chose, planned failover, and no trace of the secret.
func TestLabDRBD(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	p := drbdPair{t, newDRBDSite(t, cable, 1), newDRBDSite(t, cable, 2)}
	p.connect()
	p.failover()
}

// drbdPair is the two machines of TestLabDRBD. Its methods build on each other in their order.
type drbdPair struct {
	*testing.T
	a, b *drbdSite
}

func (p drbdPair) sites() []*drbdSite { return []*drbdSite{p.a, p.b} }

// connect gives both sides metadata, connects them, and copies all from a, whose disk holds a file system.
func (p drbdPair) connect() {
	a, b := p.a, p.b
	a.Sh("mkfs.ext4 -q %s %dk && mount %[1]s /mnt && dd if=/dev/urandom of=/mnt/old bs=1M count=4 status=none && umount /mnt", a.disk, drbdSize>>10)
	before := a.data(a.disk)

	for _, s := range p.sites() {
		s.do("new")
		s.do("new") // changes nothing
		s.command(drbd.CreateMetadata(7, s.disk))
		if m := s.metadata(); !m.New() || m.Primary || m.Bytes != 0 {
			p.Errorf("new metadata: %+v", m)
		}
		s.attach()
		if x := s.status(); x.State.Disk != drbd.Inconsistent || x.Resource != "lab" || x.Bytes != drbdSize || x.OutOfSync != x.Bytes {
			p.Errorf("a new disk: %+v", x)
		}
		s.refused(12, "primary") // no side was declared to have the current data
		s.do("connect", s.local, s.remote)
		s.refused(16, "connect", s.local, s.remote)
	}
	if a.data(a.disk) != before {
		p.Error("the metadata changed the data")
	}
	x := a.until("connected", func(x drbd.Status) bool { return x.State.Connection == drbd.Connected })
	if x.State.Disk != drbd.Inconsistent || x.State.PeerDisk != drbd.Inconsistent {
		p.Errorf("two new disks: %+v", x)
	}
	a.do("primary", "force")
	a.until("in sync", inSync)
	b.refused(11, "primary")
	if b.data(b.disk) != before {
		p.Error("the peer has other data")
	}
}

// failover makes b primary in place of a. The secret is in no argument of a process, no log and no status of the
// program, though the kernel has it.
func (p drbdPair) failover() {
	a, b := p.a, p.b
	a.Sh("mount /dev/drbd7 /mnt && md5sum /mnt/old && echo new >/mnt/new && sync")
	a.refused(13, "secondary")
	a.Sh("umount /mnt")
	a.do("secondary")
	b.do("primary")
	if got := b.Sh("mount /dev/drbd7 /mnt && cat /mnt/new && umount /mnt"); got != "new" {
		p.Errorf("after the failover the file holds %q", got)
	}
	ga, gb := a.status().Generations, b.status().Generations
	if ga == nil || gb == nil || ga.Current&^1 != gb.Current&^1 {
		p.Errorf("generations of two sides in sync: %+v %+v", ga, gb)
	}

	for _, s := range p.sites() {
		if all := s.Output("dmesg; cat /proc/drbd; "+s.program+" status; "+s.program+" list") + s.Output("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(all, drbdSecret) {
			p.Error("the secret is readable")
		}
	}
}
