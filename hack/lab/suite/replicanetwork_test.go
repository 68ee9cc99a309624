//go:build lab

package suite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/api"
)

// TestLabLongReplicationNetwork: while a pod writes, the network between the sites is broken in every way, the other machine loses its power, both
// daemons are killed, and the clocks jump. The writer goes on, both sides say what is wrong meanwhile, and they have the same data again
// without a command.
func TestLabLongReplicationNetwork(t *testing.T) {
	t.Parallel()
	p := newReplicaPair(t)
	p.enable("data", 7800, "C")
	p.a.stage("data")
	p.a.write()
	p.halfOpen(2, 1)
	p.halfOpen(1, 2)
	p.unplugged()
	p.killed()
	p.clocks()
	p.secondaryGone()
	p.impostor()
	p.failovers()

	p.failsOver()
	p.b.unstage("data")
}

// halfOpen loses what one machine sends to the other.
func (p *replicaPair) halfOpen(from, to int) {
	what := fmt.Sprintf("nothing arrives from %d at %d", from, to)
	p.cable.Lose(from, to, true)
	time.Sleep(time.Second)
	p.goesOn(what)
	p.degraded(what)
	p.cable.Lose(from, to, false)
	p.readyAgain(what)
}

// unplugged takes the cable out, for a moment and for long.
func (p *replicaPair) unplugged() {
	p.b.Must(p.b.SetLink(p.Context(), false))
	time.Sleep(2 * time.Second)
	p.b.Must(p.b.SetLink(p.Context(), true))
	p.readyAgain("a cable that was out for two seconds")
	p.b.Must(p.b.SetLink(p.Context(), false))
	p.goesOn("the cable is out")
	p.degraded("the cable is out")
	p.b.Must(p.b.SetLink(p.Context(), true))
	p.readyAgain("the cable was out")
}

// killed kills both daemons. The kernels replicate on.
func (p *replicaPair) killed() {
	for _, s := range []*replicaSite{p.a, p.b} {
		s.kill()
	}
	p.goesOn("both daemons are dead")
	for _, s := range []*replicaSite{p.a, p.b} {
		s.daemon = s.Daemon(replicationConfig)
	}
	p.readyAgain("both daemons were killed")
}

// failovers makes b the primary and a again, some times, and kills the daemon that is at it at any moment.
func (p *replicaPair) failovers() {
	p.a.enough()
	p.a.unstage("data")
	from, to := p.a, p.b
	for range 10 {
		from.interrupted("replication demote data --secret-file %s", runbookSecret)
		to.interrupted("replication promote data --secret-file %s", runbookSecret)
		for _, s := range []*replicaSite{from, to} {
			s.until("data", "ready", time.Minute, func(i api.ReplicatedVolume) bool { return ready(i) && (i.Role == "primary") == (s == to) })
		}
		to.stage("data")
		to.records()
		to.unstage("data")
		from, to = to, from
	}
	p.a.stage("data")
	p.a.write()
}

// interrupted kills the daemon while it does a command, starts it again, and repeats the command.
func (s *replicaSite) interrupted(format string, args ...any) {
	s.t.Helper()
	s.Sh("(drivebay "+format+" </dev/null >/dev/null 2>&1 &)", args...)
	time.Sleep(rand.N(400 * time.Millisecond))
	s.kill()
	s.daemon = s.Daemon(replicationConfig)
	s.do(format, args...)
}

// clocks lets the clocks jump.
func (p *replicaPair) clocks() {
	for _, by := range []time.Duration{-48 * time.Hour, 96 * time.Hour} {
		p.a.Must(p.a.JumpClock(p.Context(), by))
		p.b.Must(p.b.JumpClock(p.Context(), -by))
		time.Sleep(3 * time.Second)
		p.readyAgain(fmt.Sprintf("a jump of the clock by %v", by))
	}
	for _, s := range []*replicaSite{p.a, p.b} {
		s.Must(s.Guest.SetClock(p.Context(), time.Now()))
	}
}

// secondaryGone cuts the power of b.
func (p *replicaPair) secondaryGone() {
	p.b.PowerCut()
	p.goesOn("the other machine lost its power")
	p.a.until("data", "degraded", time.Minute, func(i api.ReplicatedVolume) bool { return i.Status == "degraded" && !i.Connected })
	p.b.boot()
	p.readyAgain("the other machine lost its power")
}

// impostor lets a third machine take the address of b, while b is cut off. Without the secret it gets nothing.
func (p *replicaPair) impostor() {
	data := scsi("DISK", 0x5000c500d0000000)
	data.Size = 128 << 20
	c := lab.Start(p.T, machine.Spec{Link: p.cable, Drives: []machine.Drive{data}})
	disk, program := "/dev/"+c.Name(data.Serial), c.Program("./hack/lab/drbd")
	p.b.Must(p.b.SetLink(p.Context(), false))
	p.degraded("b is cut off")
	c.Sh("ip addr add 10.77.0.2/24 dev $(basename $(dirname $(grep -l 52:54:00:77 /sys/class/net/*/address))); ip neigh flush all; modprobe drbd usermode_helper=/bin/true")
	c.Sh("%s list >/dev/null && %[1]s new && drbdmeta --force 7 v08 %[2]s internal create-md >/dev/null && %[1]s attach %[2]s %[3]d", program, disk, drbdSize)
	before := c.Sh("dd if=%s bs=1M count=64 iflag=direct status=none | md5sum", disk)
	p.a.Sh("ip neigh flush all")
	c.Sh("SECRET=guessed %s connect 10.77.0.2:7800 10.77.0.1:7800", program)
	for end := time.Now().Add(time.Minute); !strings.Contains(p.a.Output("dmesg | grep drbd")+c.Output("dmesg | grep drbd"), "uthentication of peer failed"); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("no peer failed to authenticate: %s\n%s", p.a.Output("cat /proc/drbd; ip neigh; dmesg | grep drbd | tail"), c.Output("cat /proc/drbd; ip addr; dmesg | grep drbd | tail"))
		}
	}
	if is := c.Sh("dd if=%s bs=1M count=64 iflag=direct status=none | md5sum", disk); is != before {
		p.Error("a machine without the secret got data")
	}
	p.goesOn("a machine without the secret asks")
	c.Sh("%s down", program)
	c.Must(c.SetLink(p.Context(), false))
	p.b.Must(p.b.SetLink(p.Context(), true))
	p.a.Sh("ip neigh flush all")
	p.readyAgain("another machine had its address")
}
