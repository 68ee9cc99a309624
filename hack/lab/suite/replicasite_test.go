//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

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
	cable   *machine.Link
	a, b    *replicaSite
	backing string // of the volumes
}

func newReplicaPair(t *testing.T) *replicaPair {
	cable := machine.NewLink()
	return &replicaPair{t, cable, newReplicaSite(t, cable, 1), newReplicaSite(t, cable, 2), "partition"}
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
		s.do("volume create %s --size %dMiB --backing %s", name, mib, p.backing)
		role := []string{"source", "target --yes"}[i]
		s.do("replication enable %s --role %s --local %s.%d:%d --peer %[3]s.%[6]d:%[5]d --protocol %[7]s --secret-file %[8]s", name, role, network, s.number, port, 3-s.number, protocol, runbookSecret)
	}
	for _, s := range []*replicaSite{p.a, p.b} {
		s.until(name, "ready", time.Duration(mib)*2*time.Second, ready)
	}
}

// failsOver ends the writer on a, fails over, and wants all records on b, which stays staged.
func (p *replicaPair) failsOver() {
	p.Helper()
	written := p.a.enough()
	p.a.unstage("data")
	p.a.do("replication demote data --secret-file %s", runbookSecret)
	p.b.do("replication promote data --secret-file %s", runbookSecret)
	p.b.stage("data")
	if have := p.b.records(); have != written {
		p.Errorf("%d records on the other side, %d were written", have, written)
	}
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
		s.until("data", "ready after "+after, 3*time.Minute, ready) // the daemon connects again after one, and the kernel copies slowly beside the writer
	}
	p.goesOn("after " + after)
}
