//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/api"
)

const replicationConfig = `claim: serial=DATA*
csiEndpoint: unix:///run/drivebay/csi.sock
replacement: {trigger: off}
replication: {secretFile: ` + runbookSecret + `}
`

// replicaSite is a machine whose daemon replicates a volume, and which keeps what it knows when its power is cut.
type replicaSite struct {
	*lab.Machine
	t      *testing.T
	number int
	daemon *lab.Daemon
}

func newReplicaSite(t *testing.T, cable *machine.Link, n int) *replicaSite {
	data, state := scsi(fmt.Sprintf("DATA%d", n), 0x5000c500b0000000+uint64(n)), scsi(fmt.Sprintf("STATE%d", n), 0x5000c500c0000000+uint64(n))
	data.Size, state.Size = 512<<20, 64<<20
	s := &replicaSite{Machine: lab.Start(t, machine.Spec{Link: cable, Drives: []machine.Drive{data, state}}), t: t, number: n}
	s.Sh("mkfs.ext4 -q /dev/%s", s.Name(state.Serial))
	s.start()
	return s
}

// start starts the daemon after a boot.
func (s *replicaSite) start() {
	s.t.Helper()
	s.Sh("mkdir -p %s /etc/drivebay %s && mount /dev/%s %[1]s && umask 077 && echo %[4]s >%[5]s", lab.DaemonState, runbookStage, s.Name(fmt.Sprintf("STATE%d", s.number)), drbdSecret, runbookSecret)
	s.daemon = s.Daemon(replicationConfig)
}

// kill ends the daemon in the middle of whatever it does.
func (s *replicaSite) kill() {
	s.t.Helper()
	s.Sh("kill -9 %d; while kill -0 %[1]d 2>/dev/null; do sleep 0.05; done", s.daemon.PID())
}

func (s *replicaSite) boot() {
	s.t.Helper()
	s.Must(s.Boot(s.t.Context()))
	s.start()
}

// do repeats a command of drivebay until it succeeds: each is idempotent.
func (s *replicaSite) do(format string, args ...any) {
	s.t.Helper()
	command := fmt.Sprintf(format, args...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		out := s.Output("drivebay " + command + " 2>&1; echo status $?")
		if strings.HasSuffix(strings.TrimSpace(out), "status 0") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("drivebay %s: %s\n%s", command, out, s.Output("cat /proc/drbd; dmesg | grep drbd | tail -30"))
		}
	}
}

// info is what the daemon knows of the replication of the volume.
func (s *replicaSite) info(name string) api.ReplicatedVolume {
	s.t.Helper()
	var list api.ReplicationList
	s.Must(json.Unmarshal([]byte(s.Sh("drivebay replication status %s -o json", name)), &list))
	if len(list.Volumes) != 1 {
		s.t.Fatalf("not one volume: %+v", list)
	}
	return list.Volumes[0]
}

// until waits for a state of the replication, and returns how long that took.
func (s *replicaSite) until(name, what string, within time.Duration, ok func(api.ReplicatedVolume) bool) time.Duration {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		info := s.info(name)
		if ok(info) {
			return time.Since(began)
		}
		if time.Since(began) > within {
			s.t.Fatalf("site %d: %s is not %s: %+v\n%s", s.number, name, what, info, s.Output("cat /proc/drbd; dmesg | grep drbd | tail -40"))
		}
	}
}

func ready(i api.ReplicatedVolume) bool { return i.State == "ready" }

// csi sends a request to the daemon, as a kubelet does.
func (s *replicaSite) csi(name, call, more string) {
	s.t.Helper()
	id := s.Sh("drivebay volumes -o 'jsonpath={.volumes[?(@.name==\"%s\")].id}'", name)
	request := fmt.Sprintf(`{"volume_id":"%s","staging_target_path":"%s"%s}`, id, runbookStage, more)
	s.Sh("CSI_ENDPOINT=unix:///run/drivebay/csi.sock drivebay csi %s '%s'", call, request)
}

func (s *replicaSite) stage(name string) {
	s.t.Helper()
	s.csi(name, "NodeStageVolume", `,"volume_capability":{"mount":{"fs_type":"ext4"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}`)
}

func (s *replicaSite) unstage(name string) {
	s.t.Helper()
	s.csi(name, "NodeUnstageVolume", "")
}

// write has numbered records appended to a file of the staged volume. A record whose number is in /run/acknowledged is on the disk,
// says fsync.
func (s *replicaSite) write() {
	s.t.Helper()
	s.Sh(`cat >/run/write <<'END'
i=$(wc -l <%[1]s/log)
while test ! -e /run/enough; do
  i=$((i+1))
  printf '%%08d\n' $i >>%[1]s/log && sync %[1]s/log && echo $i >/run/new && mv /run/new /run/acknowledged || exit
done
END
rm -f /run/enough; touch %[1]s/log; setsid bash /run/write </dev/null >/run/write.log 2>&1 & echo $! >/run/writer`, runbookStage)
	s.Sh("for i in $(seq 100); do test -s /run/acknowledged && exit; sleep 0.1; done; cat /run/write.log; exit 1")
}

func (s *replicaSite) acknowledged() int {
	s.t.Helper()
	n, err := strconv.Atoi(s.Sh("cat /run/acknowledged"))
	s.Must(err)
	return n
}

// enough ends the writer, and returns how many records it has written.
func (s *replicaSite) enough() int {
	s.t.Helper()
	s.Sh("touch /run/enough; while kill -0 $(cat /run/writer) 2>/dev/null; do sleep 0.1; done; cat /run/write.log >&2; test ! -s /run/write.log")
	return s.acknowledged()
}

// records is how many records the staged volume has. They are complete: whole ones without a gap.
func (s *replicaSite) records() int {
	s.t.Helper()
	n, err := strconv.Atoi(s.Sh("wc -l <%s/log", runbookStage))
	s.Must(err)
	s.Sh("seq -f %%08g %d | cmp - %s/log", n, runbookStage)
	return n
}

// replicaPair is two sites, and the network between them.
type replicaPair struct {
	*testing.T
	cable *machine.Link
	a, b  *replicaSite
}

func newReplicaPair(t *testing.T) *replicaPair {
	cable := machine.NewLink()
	return &replicaPair{t, cable, newReplicaSite(t, cable, 1), newReplicaSite(t, cable, 2)}
}

// enable makes a volume on both sites, and replicates it from a to b.
func (p *replicaPair) enable(name string, port int, protocol string) {
	p.Helper()
	p.enableOf("10.77.0", name, port, protocol, 64)
}

// enableOf is enable of a volume of so many MiB, on a network.
func (p *replicaPair) enableOf(network, name string, port int, protocol string, mib int) {
	p.Helper()
	for i, s := range []*replicaSite{p.a, p.b} {
		s.do("volume create %s --size %dMiB", name, mib)
		role := []string{"source", "target --yes"}[i]
		s.do("replication enable %s --role %s --local %s.%d:%d --peer %[3]s.%[6]d:%[5]d --protocol %[7]s --secret-file %[8]s", name, role, network, s.number, port, 3-s.number, protocol, runbookSecret)
	}
	for _, s := range []*replicaSite{p.a, p.b} {
		s.until(name, "ready", time.Duration(mib)*2*time.Second, ready)
	}
}

// TestLabReplicationPowerCut: a machine loses its power while it writes to a replicated volume and its network is dead, the other takes
// over with every record that was acknowledged, and the first comes back.
func TestLabReplicationPowerCut(t *testing.T) {
	t.Parallel()
	newReplicaPair(t).powerCut("data-c", "C")
}

// TestLabLongReplicationPowerCut: with protocol A, the records of the last moments are lost, and the side that takes over says since when. A side
// that wrote alone before its power went has data that the other one has not: a split brain.
func TestLabLongReplicationPowerCut(t *testing.T) {
	t.Parallel()
	p := newReplicaPair(t)
	p.powerCut("data-a", "A")
	p.splitBrain("data-a")
	p.bothGone("data-a", p.a, p.b)
	p.bothGone("data-a", p.b, p.a)
}

func (p *replicaPair) powerCut(name, protocol string) {
	a, b := p.a, p.b
	p.enable(name, 7800, protocol)
	a.stage(name)
	a.write()
	time.Sleep(time.Second)

	// Frames are lost in both directions; neither side knows yet.
	sent := a.acknowledged()
	p.cable.Lose(1, 2, true)
	p.cable.Lose(2, 1, true)
	time.Sleep(time.Second)
	early := a.acknowledged()
	time.Sleep(2 * time.Second)
	last := a.acknowledged()
	silent := time.Now()
	a.PowerCut()
	if waits := early == last; waits != (protocol == "C") {
		p.Errorf("protocol %s: %d records acknowledged when the network died, %d a second later, %d after three", protocol, sent, early, last)
	}
	p.cable.Lose(1, 2, false)
	p.cable.Lose(2, 1, false)

	took := b.until(name, "without its peer", time.Minute, func(i api.ReplicatedVolume) bool { return !i.Connected })
	p.Logf("protocol %s: b knows after %v that a is gone", protocol, took.Round(time.Second))
	if synced := b.info(name).LastSync; synced.After(silent.Add(took+5*time.Second)) || synced.IsZero() {
		p.Errorf("last sync %v, the network died before %v", synced, silent)
	}
	have := p.takeOver(name)
	switch {
	case protocol == "C" && have < last:
		p.Errorf("%d records were acknowledged, %d are on the other side", last, have)
	case protocol == "A" && (have >= last || have < sent-20):
		p.Errorf("protocol A: of %d records, %d before the network died, %d are on the other side", last, sent, have)
	}
	p.Logf("protocol %s: %d records acknowledged when the network died, %d when the power went, %d on the other side", protocol, sent, last, have)

	// a was not primary without its peer: it comes back as the secondary, without a command.
	a.boot()
	a.until(name, "the secondary, and ready", time.Minute, func(i api.ReplicatedVolume) bool { return ready(i) && i.Role == "secondary" })
	p.failBack(name, have)
}

// takeOver makes b primary without a, writes there, and returns how many records it has.
func (p *replicaPair) takeOver(name string) (have int) {
	p.b.do("replication promote %s --force --yes --secret-file %s", name, runbookSecret)
	p.b.stage(name)
	have = p.b.records()
	p.b.Sh("echo kept >%s/alone-b; sync", runbookStage)
	return have
}

// failBack makes a primary again, which has what b has.
func (p *replicaPair) failBack(name string, have int) {
	p.b.unstage(name)
	p.b.do("replication demote %s --secret-file %s", name, runbookSecret)
	p.a.do("replication promote %s --secret-file %s", name, runbookSecret)
	p.a.stage(name)
	if got := p.a.records(); got != have {
		p.Errorf("%d records after the failback, %d before", got, have)
	}
	p.a.Sh("grep kept %s/alone-b", runbookStage)
	p.a.unstage(name)
}

// bothGone cuts the power of both sites under a writer. Both have their roles again, whichever comes back first.
func (p *replicaPair) bothGone(name string, first, second *replicaSite) {
	p.a.stage(name)
	p.a.write()
	last := p.a.acknowledged()
	first.PowerCut()
	second.PowerCut()
	first.boot()
	second.boot()
	for s, role := range map[*replicaSite]string{p.a: "primary", p.b: "secondary"} {
		s.until(name, "ready as the "+role, time.Minute, func(i api.ReplicatedVolume) bool { return ready(i) && i.Role == role })
	}
	p.a.stage(name)
	if have := p.a.records(); have < last {
		p.Errorf("%d records were acknowledged before the power of both sites went, %d are there", last, have)
	}
	p.a.unstage(name)
}

// splitBrain lets a write alone before its power goes, and b be promoted.
func (p *replicaPair) splitBrain(name string) {
	a, b := p.a, p.b
	a.stage(name)
	a.write()
	p.cable.Lose(1, 2, true)
	p.cable.Lose(2, 1, true)
	b.until(name, "without its peer", time.Minute, func(i api.ReplicatedVolume) bool { return !i.Connected })
	p.goesOn("the network is dead")
	a.PowerCut()
	p.cable.Lose(1, 2, false)
	p.cable.Lose(2, 1, false)
	have := p.takeOver(name)

	a.boot()
	b.until(name, "a split brain", time.Minute, func(i api.ReplicatedVolume) bool { return i.State == "split brain" })
	a.until(name, "a split brain, or refused by b which knows", time.Minute, func(i api.ReplicatedVolume) bool {
		return i.State == "split brain" || i.Conflict == string(drivebay.RefusedByPeer)
	})
	p.Logf("a says: %+v", a.info(name))
	a.do("replication demote %s --secret-file %s", name, runbookSecret)
	a.do("replication resync %s --force --yes --secret-file %s", name, runbookSecret)
	b.do("replication promote %s --secret-file %s", name, runbookSecret)
	for _, s := range []*replicaSite{a, b} {
		s.until(name, "ready", time.Minute, ready)
	}
	p.failBack(name, have)
}

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

	written := p.a.enough()
	p.a.unstage("data")
	p.a.do("replication demote data --secret-file %s", runbookSecret)
	p.b.do("replication promote data --secret-file %s", runbookSecret)
	p.b.stage("data")
	if have := p.b.records(); have != written {
		t.Errorf("%d records on the other side, %d were written", have, written)
	}
	p.b.unstage("data")
}

// goesOn wants the writer to write within a time, and logs how long it stood still.
func (p *replicaPair) goesOn(after string) {
	p.Helper()
	was, began := p.a.acknowledged(), time.Now()
	for p.a.acknowledged() == was {
		if time.Since(began) > 30*time.Second {
			p.Fatalf("%s: the writer stands still at record %d\n%s", after, was, p.a.Output("cat /proc/drbd /run/write.log; dmesg | grep drbd | tail -20"))
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.Logf("%s: the writer goes on after %v", after, time.Since(began).Round(100*time.Millisecond))
}

// degraded wants both sides to say that they are not connected.
func (p *replicaPair) degraded(what string) {
	p.Helper()
	for _, s := range []*replicaSite{p.a, p.b} {
		took := s.until("data", "degraded: "+what, time.Minute, func(i api.ReplicatedVolume) bool { return i.Status == "degraded" && !i.Connected })
		p.Logf("%s: site %d says so after %v", what, s.number, took.Round(time.Second))
	}
}

func (p *replicaPair) readyAgain(after string) {
	p.Helper()
	for _, s := range []*replicaSite{p.a, p.b} {
		s.until("data", "ready after "+after, time.Minute, ready)
	}
	p.goesOn("after " + after)
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
			p.Fatalf("nobody tried: %s\n%s", p.a.Output("cat /proc/drbd; ip neigh; dmesg | grep drbd | tail"), c.Output("cat /proc/drbd; ip addr; dmesg | grep drbd | tail"))
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

// TestLabLongReplicationDrive: while a pod writes, the drive of the secondary is pulled, and then that of the primary. The pod writes on; each side
// is made again on a new drive, with all data of the other one.
func TestLabLongReplicationDrive(t *testing.T) {
	t.Parallel()
	p := newReplicaPair(t)
	p.enable("data", 7800, "C")
	p.a.stage("data")
	p.a.write()

	p.pull(p.b)
	p.b.makeAgain("DATA20", p.a)
	p.readyAgain("the side of b was made again")

	p.pull(p.a)
	written := p.a.enough()
	p.a.unstage("data")
	p.a.do("replication demote data --secret-file %s", runbookSecret)
	p.b.do("replication promote data --secret-file %s", runbookSecret)
	p.b.stage("data")
	if have := p.b.records(); have != written {
		t.Errorf("%d records on the other side, %d were written, the last ones without a drive", have, written)
	}
	p.a.makeAgain("DATA10", p.b)
	for _, s := range []*replicaSite{p.a, p.b} {
		s.until("data", "ready", time.Minute, ready)
	}
	p.b.unstage("data")
}

// pull takes the drive of a site out under the writer.
func (p *replicaPair) pull(s *replicaSite) {
	p.Helper()
	what := fmt.Sprintf("the drive of site %d is pulled", s.number)
	s.Must(s.Unplug(p.Context(), fmt.Sprintf("DATA%d", s.number)))
	for _, s := range []*replicaSite{p.a, p.b} {
		took := s.until("data", "degraded: "+what, time.Minute, func(i api.ReplicatedVolume) bool { return i.Status == "degraded" })
		p.Logf("%s: site %d says so after %v: %s", what, s.number, took.Round(time.Second), s.info("data").Message)
	}
	p.goesOn(what)
	time.Sleep(5 * time.Second) // the mounts and the counters are looked at again
	all, err := p.a.daemon.Volumes(p.Context())
	p.a.Must(err)
	for _, v := range all.Volumes {
		if v.Condition.Severity() >= drivebay.SeverityInaccessible || v.OperationalStatus == drivebay.Missing {
			p.Errorf("%s, and the pod writes on: %v, %+v", what, v.OperationalStatus, v.Condition)
		}
	}
}

// makeAgain gives a site whose drive is gone a new one, and its side of the volume on that.
func (s *replicaSite) makeAgain(serial string, peer *replicaSite) {
	s.t.Helper()
	drive := scsi(serial, 0x5000c500f0000000+uint64(s.number))
	drive.Size = 512 << 20
	s.Must(s.Plug(s.t.Context(), drive))
	s.do("volume forget data --yes")
	s.do("volume create data --size 64MiB")
	s.do("replication enable data --role target --yes --local 10.77.0.%d:7800 --peer 10.77.0.%d:7800 --secret-file %s", s.number, peer.number, runbookSecret)
	s.until("data", "ready", 10*time.Minute, ready) // beside a writer the kernel copies with some hundred KiB/s
}
