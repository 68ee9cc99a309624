//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/drbd"
)

const (
	drbdSecret = "correct-horse-battery"
	drbdSize   = 96<<20 + 4096 // see drbd.ValidSize
)

// drbdSite is one side of a replicated disk: DISK holds the data, META the metadata, /dev/drbd7 is the device.
type drbdSite struct {
	*lab.Machine
	t             *testing.T
	program       string
	local, remote string
	disk, meta    string
}

func newDRBDSite(t *testing.T, cable *machine.Link, end int) *drbdSite {
	data, meta := scsi("DISK", 0x5000c500b0000000), scsi("META", 0x5000c500b0000001)
	data.Size = drbdSize
	meta.Size = int64(drbd.MetadataBytes(drbdSize))
	s := &drbdSite{Machine: lab.Start(t, machine.Spec{Link: cable, Drives: []machine.Drive{data, meta}}), t: t,
		local: fmt.Sprintf("10.77.0.%d:7789", end), remote: fmt.Sprintf("10.77.0.%d:7789", 3-end)}
	s.program = s.Program("./hack/lab/drbd")
	s.disk, s.meta = "/dev/"+s.Name("DISK"), "/dev/"+s.Name("META")
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

func (s *drbdSite) command(argv []string) { s.t.Helper(); s.Sh("%s", strings.Join(argv, " ")) }

func (s *drbdSite) attach() {
	s.t.Helper()
	s.command(drbd.ApplyActivityLog(7, s.meta))
	s.do("attach", s.disk, s.meta, drbdSize)
}

func (s *drbdSite) status() (x drbd.Status) {
	s.t.Helper()
	s.Must(json.Unmarshal([]byte(s.do("status")), &x))
	return x
}

func (s *drbdSite) metadata() (x drbd.Metadata) {
	s.t.Helper()
	s.Must(json.Unmarshal([]byte(s.do("metadata", s.meta)), &x))
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

func standAlone(x drbd.Status) bool { return x.State.Connection == drbd.StandAlone }

// content is the checksum of the first 4 MiB of a device.
func (s *drbdSite) content(device string) string {
	s.t.Helper()
	return s.Sh("dd if=%s bs=1M count=4 iflag=direct status=none | md5sum", device)
}

// TestLabDRBDBitmap: at an attach the kernel forgets that the last 256 KiB of a disk differ from the peer when the
// size is a multiple of 256 KiB. Once it does not any more, drbd.ValidSize can go.
func TestLabDRBDBitmap(t *testing.T) {
	t.Parallel()
	s := newDRBDSite(t, nil, 1)
	s.Sh("modprobe drbd usermode_helper=/bin/true")
	s.command(drbd.CreateMetadata(7, s.meta))
	s.command(drbd.ApplyActivityLog(7, s.meta))
	s.do("new")
	s.refused(1, "attach", s.disk, s.meta, 96<<20)
	s.Sh("drbdsetup attach 7 %s %s flexible --size=%ds", s.disk, s.meta, 96<<20/512)
	if x := s.status(); x.Bytes != 96<<20 || x.OutOfSync != x.Bytes-256<<10 {
		t.Errorf("a new disk of 96 MiB: %+v", x)
	}
	s.do("down")
	s.command(drbd.CreateMetadata(7, s.meta))
	s.do("new")
	s.attach()
	if x := s.status(); x.Bytes != drbdSize || x.OutOfSync != drbdSize {
		t.Errorf("a new disk of 96 MiB and 4 KiB: %+v", x)
	}
}

// TestLabDRBD: two machines, a disk with a file system on the first one, and package drbd against the kernel's module:
// full copy in the direction that the operator chose, planned failover, split brain and its end, and what is refused.
func TestLabDRBD(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	p := drbdPair{t, newDRBDSite(t, cable, 1), newDRBDSite(t, cable, 2)}
	p.connect()
	p.failover()
	kept := p.splitBrain()
	p.attachAgain()
	p.wrongSecret()
	for _, s := range p.sites() {
		s.do("down")
		s.refused(14, "status")
		if all := s.do("list"); strings.TrimSpace(all) != "null" {
			t.Errorf("after down: %s", all)
		}
	}
	if p.a.content(p.a.disk) != kept {
		t.Error("the plain disk does not hold the data")
	}
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
	a.refused(10, "list")
	for _, s := range p.sites() {
		s.Sh("modprobe drbd usermode_helper=/bin/true")
	}
	a.Sh("mkfs.ext4 -q %s && mount %[1]s /mnt && dd if=/dev/urandom of=/mnt/old bs=1M count=4 status=none && umount /mnt", a.disk)
	before := a.Sh("md5sum <%s", a.disk)

	for _, s := range p.sites() {
		s.do("new")
		s.do("new") // changes nothing
		s.command(drbd.CreateMetadata(7, s.meta))
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
	if is := a.Sh("md5sum <%s", a.disk); is != before {
		p.Error("external metadata changed the disk")
	}
	x := a.until("connected", func(x drbd.Status) bool { return x.State.Connection == drbd.Connected })
	if x.State.Disk != drbd.Inconsistent || x.State.PeerDisk != drbd.Inconsistent {
		p.Errorf("two new disks: %+v", x)
	}
	a.do("primary", "force")
	a.until("in sync", inSync)
	b.refused(11, "primary")
	if m := b.Sh("md5sum <%s", b.disk); m != before {
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

// splitBrain has both sides write without the other one: neither loses anything by itself. Then b gives its data up. It
// returns the content that both sides have in the end.
func (p drbdPair) splitBrain() (kept string) {
	a, b := p.a, p.b
	for _, s := range p.sites() {
		s.do("disconnect", s.local, s.remote, "force")
		s.until("alone", standAlone)
	}
	a.do("primary")
	for _, s := range p.sites() {
		s.Sh("dd if=/dev/urandom of=/dev/drbd7 bs=1M count=4 oflag=direct status=none")
	}
	mine, theirs := a.content("/dev/drbd7"), b.content("/dev/drbd7")
	for _, s := range p.sites() {
		s.do("connect", s.local, s.remote)
	}
	a.until("alone after a split brain", standAlone)
	b.until("alone or waiting after a split brain", func(x drbd.Status) bool { return x.State.Connection <= drbd.WFConnection })
	if a.content("/dev/drbd7") != mine || b.content("/dev/drbd7") != theirs || mine == theirs {
		p.Fatal("a split brain changed data without an operator")
	}
	for _, s := range p.sites() {
		s.do("disconnect", s.local, s.remote, "force")
		s.until("alone", standAlone)
	}
	b.do("secondary")
	b.do("connect", b.local, b.remote, "discard")
	a.do("connect", a.local, a.remote)
	a.until("in sync after the resync", inSync)
	if a.content("/dev/drbd7") != mine || b.content(b.disk) != mine {
		p.Error("after the resync the sides do not hold the data of the winner")
	}
	return mine
}

// attachAgain prepares a disk that was in use, and attaches it again. Then the operator declares b worthless, and all is
// copied from a.
func (p drbdPair) attachAgain() {
	a, b := p.a, p.b
	a.do("secondary")
	a.do("detach")
	a.refused(15, "attach", a.disk, a.meta, drbdSize)
	if m := a.metadata(); m.Clean || m.New() {
		p.Errorf("after use: %+v", m)
	}
	a.attach()
	a.until("in sync after it was attached again", inSync)
	b.do("invalidate")
	b.until("in sync after it was invalidated", inSync)
}

// wrongSecret: a peer without the secret gets nothing.
func (p drbdPair) wrongSecret() {
	a, b := p.a, p.b
	b.do("disconnect", b.local, b.remote)
	a.until("waiting", func(x drbd.Status) bool { return x.State.Connection < drbd.Connected })
	b.Sh("SECRET=wrong %s connect %s %s", b.program, b.local, b.remote)
	time.Sleep(5 * time.Second)
	if x, y := a.status(), b.status(); x.State.Connection >= drbd.Connected || y.State.Connection >= drbd.Connected {
		p.Errorf("a wrong secret connects: %v, %v", x.State, y.State)
	} else {
		p.Logf("after a wrong secret: %v, %v", x.State, y.State)
	}
}
