//go:build lab

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

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
	p.a.stage("data") // a pod that starts without the drive
	if have := p.a.records(); have != written {
		t.Errorf("a pod that starts without the drive has %d records, %d were written", have, written)
	}
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

// TestLabLongReplicationReplugged: the drive of the secondary is pulled and put back at once, below a partition and below a logical volume. It gets
// what was written meanwhile, and the sites can change their roles.
func TestLabLongReplicationReplugged(t *testing.T) {
	t.Parallel()
	for _, backing := range []string{"partition", "lvm"} {
		t.Run(backing, func(t *testing.T) {
			p := newReplicaPair(t)
			p.backing = backing
			p.enable("data", 7800, "C")
			p.a.stage("data")
			p.a.write()
			p.b.Must(p.b.Unplug(t.Context(), "DATA2"))
			p.b.Must(p.b.Replug(t.Context(), "DATA2"))
			p.goesOn("the drive of the secondary is replugged")
			time.Sleep(20 * time.Second) // the daemon sees the drive that it is now
			p.readyAgain("its drive was replugged")
			p.failsOver()
			p.b.unstage("data")
		})
	}
}

// TestLabLongReplicationAlone: the drive of the primary is pulled and put back while the network is down and no pod uses the volume. It is used
// again before the network is back, with all that was written, and is synchronized then.
func TestLabLongReplicationAlone(t *testing.T) {
	t.Parallel()
	for _, backing := range []string{"partition", "lvm"} {
		t.Run(backing, func(t *testing.T) {
			p := newReplicaPair(t)
			p.backing = backing
			p.enable("data", 7800, "C")
			p.a.stage("data")
			p.a.write()
			written := p.a.enough()
			p.a.unstage("data")
			p.b.Must(p.b.SetLink(t.Context(), false))
			p.degraded("the network is down")
			p.a.Must(p.a.Unplug(t.Context(), "DATA1"))
			p.a.Must(p.a.Replug(t.Context(), "DATA1"))
			time.Sleep(time.Minute) // the daemon sees the drive that it is now
			p.a.stage("data")
			if have := p.a.records(); have != written {
				t.Errorf("%d records of %d", have, written)
			}
			p.a.Sh("rm /run/enough")
			p.a.write()
			p.goesOn("its drive was put back")
			p.b.Must(p.b.SetLink(t.Context(), true))
			p.readyAgain("the network was down")
			p.failsOver()
			p.b.unstage("data")
		})
	}
}

// TestLabLongReplicationMoved: the drive of the secondary is to be replaced while a pod writes, and then that of the primary once the pod has ended. Each
// side is copied to another drive, and is connected again.
func TestLabLongReplicationMoved(t *testing.T) {
	t.Parallel()
	p := newReplicaPair(t)
	p.enable("data", 7800, "C")
	p.a.stage("data")
	p.a.write()
	p.b.moveAway("DATA20")
	p.readyAgain("the side of b was copied to another drive")
	written := p.a.enough()
	p.a.unstage("data")
	p.a.moveAway("DATA10")
	for _, s := range []*replicaSite{p.a, p.b} {
		s.until("data", "ready after the side of a was copied", 3*time.Minute, ready)
	}
	p.a.do("replication demote data --secret-file %s", runbookSecret)
	p.b.do("replication promote data --secret-file %s", runbookSecret)
	p.b.stage("data")
	if have := p.b.records(); have != written {
		t.Errorf("%d records on the other side, %d were written", have, written)
	}
	p.b.unstage("data")
}

// moveAway plugs another drive in, and releases the one that the site has.
func (s *replicaSite) moveAway(serial string) {
	s.t.Helper()
	drive := scsi(serial, 0x5000c500f0000000+uint64(s.number))
	drive.Size = 512 << 20
	s.Must(s.Plug(s.t.Context(), drive))
	s.do("release DATA%d", s.number)
	began := time.Now()
	for {
		list := s.Sh(`drivebay drives -o 'jsonpath={range .drives[*]}{.serial} {.usage}{"\n"}{end}'`)
		if strings.Contains(list, fmt.Sprintf("DATA%d RELEASED", s.number)) {
			s.t.Logf("site %d: its drive was released after %v", s.number, time.Since(began).Round(time.Second))
			return
		}
		if time.Since(began) > 5*time.Minute {
			s.t.Fatalf("site %d: its drive is not released: %s\n%s", s.number, list, s.Output("drivebay status; drivebay replication status; cat /proc/drbd; dmesg | tail -20"))
		}
		time.Sleep(time.Second)
	}
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
