//go:build lab

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// generation writes a file that tells which data these are, or reads it.
func (o *orchestrator) generation(v vol, write string) string {
	o.t.Helper()
	if write != "" {
		o.Sh("echo %s >%s/generation; sync; sync -f %[2]s", write, v.target())
	}
	return strings.TrimSpace(o.Output("echo 3 >/proc/sys/vm/drop_caches; cat " + v.target() + "/generation 2>&1"))
}

// stale wants a mirror of which only an old leg is there to be refused.
func (o *orchestrator) stale(v vol, newest string) {
	o.t.Helper()
	began := time.Now()
	for !strings.Contains(o.view(v).Condition.Message(), "MirrorLegStale") {
		if time.Since(began) > soon {
			o.t.Fatalf("with its old leg alone it says %s", o.view(v).Condition.Message())
		}
		time.Sleep(200 * time.Millisecond)
	}
	err := o.stage(v)
	if status.Code(err) == codes.OK || !strings.Contains(err.Error(), newest) {
		o.t.Errorf("stage with an old leg: %v; the newest data are on %s", err, newest)
	}
	if got := o.generation(v, ""); strings.Contains(got, "first") {
		o.t.Errorf("the old leg is read: %q", got)
	}
}

// again wants a mirror whose drives are both there to have these data, and then on each
// of its legs.
func (o *orchestrator) again(v vol, want string) {
	o.t.Helper()
	began := time.Now()
	for {
		err := o.stage(v)
		if err == nil {
			err = o.publish(v)
		}
		if err == nil {
			break
		}
		if time.Since(began) > moving {
			o.t.Fatalf("with both legs there: %v", err)
		}
		time.Sleep(time.Second)
	}
	if got := o.generation(v, ""); got != want {
		o.t.Fatalf("with both legs there it reads %q, want %q", got, want)
	}
	o.heals(v, moving, "DiskDegrading", "RWIOError")
	legs := o.Sh("for d in /dev/mapper/*_rimage_*; do debugfs -R 'cat /generation' $d 2>/dev/null; done")
	if strings.Count(legs, want) != 2 || strings.TrimSpace(strings.ReplaceAll(legs, want, "")) != "" {
		o.t.Errorf("its legs read %q, want %q twice", legs, want)
	}
}

// TestLabVolumeMirrorStale: one leg of a mirror is pulled, data are written, the other leg
// is pulled and the first one put back: its old data are not served. With both of them
// there, it is the old one that is copied to.
func TestLabVolumeMirrorStale(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("STATE"), scsi("A", 0x5000c500b0000000), scsi("B", 0x5000c500b0000001)}})
	m.Sh("mkfs.ext4 -q /dev/%s", m.Name("STATE"))
	remember := func() { m.Sh("mkdir -p %s && mount /dev/%s %[1]s", lab.DaemonState, m.Name("STATE")) }
	remember()
	o := orchestrateBy(t, m, tending)
	v := o.create("m", drivebay.BackingMirror, "ext4", 64<<20, "A", "B")
	o.only()
	o.use(v)
	o.heals(v, moving)
	pull := func(serial string) {
		m.Must(m.Unplug(t.Context(), serial))
		o.d.UntilDrive(serial, "pulled", soon, is(drivebay.StatusOffline))
	}
	put := func(serial string) {
		m.Must(m.Replug(t.Context(), serial))
		o.d.UntilDrive(serial, "back", soon, is(drivebay.StatusOnline))
	}
	for i, variant := range few("staged", "restart", "both", "reboot") {
		old, newest := "A", "B"
		if i%2 == 1 {
			old, newest = "B", "A"
		}
		began := time.Now()
		o.generation(v, "first")
		pull(old)
		o.generation(v, variant)
		switch variant {
		case "staged":
			pull(newest)
			put(old)
			time.Sleep(25 * time.Second) // for two looks of the healing
		case "both":
			o.drop(v)
			pull(newest)
			put(old)
		case "restart":
			o.drop(v)
			pull(newest)
			o.Sh("kill -9 %d", o.d.PID())
			m.Must(m.Replug(t.Context(), old))
			o.start()
		case "reboot":
			m.Must(m.Unplug(t.Context(), newest))
			m.PowerCut()
			m.Must(m.Boot(t.Context()))
			m.Must(m.Replug(t.Context(), old))
			remember()
			o.start()
		}
		if variant != "both" {
			o.stale(v, newest)
		}
		put(newest)
		o.again(v, variant)
		t.Logf("%s: %v", variant, time.Since(began).Round(time.Second))
	}
}
