//go:build lab

package suite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/lvm"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// moving is how long a move of some hundred MiB may take in the lab: half a minute on a
// host with nothing else to do.
const moving = 5 * time.Minute

// slowly leaves time for what is to happen in the middle of a move.
var slowly = strings.Replace(carrying, "trigger: off", "trigger: off, throttle: 4", 1)

// little is a drive for thin pools: they take all of it, and all of that moves.
func little(id string) machine.Drive {
	d := nvme(id)
	d.Size = 512 << 20
	return d
}

// midway waits until the kernel is copying.
func (o *orchestrator) midway(what string) {
	o.t.Helper()
	for began := time.Now(); ; {
		if s := o.Output(`dmsetup status | awk '/ mirror /{split($8,a,"/"); if (a[1]<a[2]) print}'`); s != "" {
			o.t.Logf("%s at %s", what, s)
			return
		}
		if time.Since(began) > moving {
			o.t.Fatal("nothing moves")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// moves waits until the kernel has begun to copy this very volume, and is not halfway.
func (o *orchestrator) moves(v vol) {
	o.t.Helper()
	at := o.view(v).Location
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if s := o.Output(`dmsetup deps -o devname ` + lvm.MapperName(at.VG, at.LV) + ` | grep -q pvmove0 && dmsetup status | awk '/ mirror /{split($8,a,"/"); if (2*a[1]<a[2]) print}'`); s != "" {
			o.t.Logf("%s moves: %s", v.name, s)
			return
		}
		if time.Since(began) > moving {
			o.t.Fatalf("%s does not move", v.name)
		}
	}
}

// writes has a pod write one file after the other to a volume, with their checksums,
// until it is told to stop. What cannot be written is kept.
func (o *orchestrator) writes(all ...vol) {
	o.t.Helper()
	for _, v := range all {
		o.Sh(`(cd %[1]s; n=0; while [ ! -e /run/stop-%[2]s ]; do n=$(((n+1)%%8)); sleep 0.5; head -c 1M /dev/urandom >f$n && sync f$n && md5sum f$n >f$n.md5 && sync f$n.md5 || echo error >>/run/err-%[2]s; done; touch /run/stopped-%[2]s) </dev/null >/dev/null 2>>/run/err-%[2]s &`, v.target(), v.name)
	}
}

// wrote wants all that was written to be there, and nothing to have failed.
func (o *orchestrator) wrote(all ...vol) {
	o.t.Helper()
	for _, v := range all {
		o.Sh("touch /run/stop-%s; while [ ! -e /run/stopped-%[1]s ]; do sleep 0.2; done; sync", v.name)
		if said := o.Output("cat /run/err-" + v.name); said != "" {
			o.t.Errorf("%s: writing failed: %s", v.name, said)
		}
		o.Sh("echo 3 >/proc/sys/vm/drop_caches; cd %s && ls *.md5 >/dev/null && cat *.md5 | md5sum -c --quiet", v.target())
	}
}

// usage waits until a drive is so far on its way.
func (o *orchestrator) usage(serial string, want drivebay.Usage, limit time.Duration) {
	o.t.Helper()
	most := 0
	_, took := o.d.UntilDrive(serial, want.String(), limit, func(d *drivebay.Drive) error {
		if d.Leaving != nil && d.Leaving.Progress != nil {
			most = max(most, d.Leaving.Progress.Percent())
		}
		if d.Usage != want {
			return fmt.Errorf("it is %v: %+v", d.Usage, d.Leaving)
		}
		return nil
	})
	o.t.Logf("%s is %v after %v; it was seen at %d %%", serial, want, took.Round(100*time.Millisecond), most)
}

func (o *orchestrator) lead(serial string, do drivebay.LeaveVerb) {
	o.t.Helper()
	o.Must(o.d.Operate(o.t.Context(), serial, do, ""))
}

// on wants volumes to be on these drives, whole and in use.
func (o *orchestrator) on(serials []string, all ...vol) {
	o.t.Helper()
	for _, v := range all {
		view := o.view(v)
		var is []string
		for _, id := range view.Location.Drives {
			s, err := o.d.Snapshot(o.t.Context())
			o.Must(err)
			d, _ := s.Find(id)
			is = append(is, d.Serial)
		}
		if slices.Sort(is); !slices.Equal(is, serials) || view.Usage != drivebay.VolumeInUse {
			o.t.Errorf("%s is on %v, %v", v.name, is, view.Usage)
		}
	}
}

// TestLabVolumeEvacuate: an NVMe drive says that it is unreliable while pods write to
// three volumes on it. One command of the operator empties it below them, has it taken
// out, and ends with its successor in use.
func TestLabVolumeEvacuate(t *testing.T) {
	t.Parallel()
	for _, backing := range few(drivebay.BackingLVM, drivebay.BackingThin) {
		t.Run(string(backing), func(t *testing.T) {
			m := lab.Start(t, machine.Spec{Drives: []machine.Drive{little("OLD"), little("SPARE")}})
			o := orchestrate(t, m)
			var all []vol
			for _, name := range []string{"a", "b", "c"} {
				all = append(all, o.create(name, backing, "ext4", 64<<20, "OLD"))
			}
			o.only()
			o.use(all...)
			o.writes(all...)
			m.Must(m.SetCriticalWarning(t.Context(), "OLD", 4))
			o.d.UntilDrive("OLD", "BAD", poll+soon, func(d *drivebay.Drive) error {
				if d.Health != drivebay.HealthBad {
					return fmt.Errorf("it is %v", d.Health)
				}
				return nil
			})
			old := o.d.BySerial("OLD")
			var out said
			cmd, err := m.Guest.Start(t.Context(), agent.Command{Argv: []string{"drivebay", "replace", old.Slot.Bay, "--yes", "--why", "it is unreliable"}}, agent.Streams{Out: &out, Err: &out})
			m.Must(err)
			t.Cleanup(func() { t.Logf("drivebay replace said:\n%s", &out) })
			o.usage("OLD", drivebay.UsageRemoved, moving)
			o.on([]string{"SPARE"}, all...)
			out.until(t, "SAFE TO PULL: bay "+old.Slot.Bay)
			m.Sh("! test -e /sys/bus/pci/devices/%s", old.Paths[0].Address)
			m.Must(m.Unplug(t.Context(), "OLD"))
			m.Must(m.PlugInto(t.Context(), little("NEW"), "OLD"))
			m.Must(cmd.Wait())
			if next := o.d.BySerial("NEW"); next.Claim == nil || next.Usage != drivebay.UsageInUse || next.Succeeds == nil || next.Succeeds.Of != old.ID {
				t.Errorf("the successor: claim %v, %v, %+v", next.Claim, next.Usage, next.Succeeds)
			}
			o.wrote(all...)
			o.well(all...)
			o.drop(all...)
		})
	}
}

// TestLabVolumeLeavesNothing: when a drive is released, nothing is left on it of the data
// that real LVM has moved off it.
func TestLabVolumeLeavesNothing(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{little("OLD"), little("SPARE")}})
	o := orchestrate(t, m)
	o.wipe = drivebay.WipeZero
	v := o.create("v", drivebay.BackingLVM, "ext4", 64<<20, "OLD")
	o.only()
	o.use(v)
	m.Sh("for i in $(seq 2000); do echo it-is-left-behind; done >%s/file; sync", v.target())
	old := m.Name("OLD")
	const found = "dd if=/dev/%s bs=1M iflag=direct 2>/dev/null | grep -c it-is-left-behind || true"
	if n := strings.TrimSpace(m.Sh(found, old)); n == "0" {
		t.Fatal("its data is not found on its drive")
	}
	o.lead("OLD", drivebay.LeaveRelease)
	o.usage("OLD", drivebay.UsageReleased, moving)
	if n := strings.TrimSpace(m.Sh(found, old)); n != "0" {
		t.Errorf("%s lines of its data are left on the drive that it moved off", n)
	}
	o.on([]string{"SPARE"}, v)
	m.Sh("grep -q it-is-left-behind %s/file", v.target())
	o.drop(v)
}

// TestLabVolumeEvacuateMirror: a leg of a mirror is pulled under a pod that writes; on
// its successor the mirror becomes whole again.
func TestLabVolumeEvacuateMirror(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("LEG"), scsi("PULLED", 0x5000c500b0000000)}})
	o := orchestrate(t, m)
	v := o.create("mirror", drivebay.BackingMirror, "ext4", 64<<20, "LEG", "PULLED")
	o.use(v)
	o.heals(v, moving) // until it is copied
	o.writes(v)
	m.Must(m.Unplug(t.Context(), "PULLED"))
	o.d.UntilDrive("PULLED", "pulled", soon, is(drivebay.StatusOffline))
	o.lead("PULLED", drivebay.LeaveRelease)
	m.Must(m.Plug(t.Context(), scsi("NEXT", 0x5000c500b0000001)))
	o.usage("PULLED", drivebay.UsageReleased, moving)
	o.on([]string{"LEG", "NEXT"}, v)
	o.wrote(v)
	m.Must(m.Unplug(t.Context(), "LEG")) // and the new leg alone has it all
	o.Sh("echo 3 >/proc/sys/vm/drop_caches; cd %s && cat *.md5 | md5sum -c --quiet", v.target())
	o.takenOut("LEG") // no spare is there; as soon as one is, the mirror is made whole
	m.Must(m.Plug(t.Context(), scsi("LAST", 0x5000c500b0000002)))
	o.rests(v, "NEXT", "LAST")
	o.heals(v, moving, "RWIOError")
	o.Sh("echo 3 >/proc/sys/vm/drop_caches; cd %s && cat *.md5 | md5sum -c --quiet", v.target())
	m.Must(m.Unplug(t.Context(), "LAST"))
	o.takenOut("LAST") // and it is removed without its other leg
	o.drop(v)
	o.Must(o.remove(v))
	o.Sh(`test -z "$(lvm pvs --noheadings)"; if dmsetup ls | grep drivebay; then exit 1; fi; test "$(head -c 1M /dev/%s | tr -d '\0' | wc -c)" = 0`, o.Name("NEXT"))
	m.Must(m.Replug(t.Context(), "LAST")) // its own metadata show the volume still
	o.d.UntilDrive("LAST", "back", soon, is(drivebay.StatusOnline))
	o.lead("LAST", drivebay.LeaveAccept)
	time.Sleep(15 * time.Second)
	if said := o.Output("drivebay volumes"); strings.Contains(said, v.id[:10]) {
		t.Errorf("deleted, and a volume again:\n%s", said)
	}
}

// takenOut gives up a drive that was pulled.
func (o *orchestrator) takenOut(serial string) {
	o.t.Helper()
	o.d.UntilDrive(serial, "pulled", soon, is(drivebay.StatusOffline))
	o.lead(serial, drivebay.LeaveRelease)
	o.lead(serial, drivebay.LeaveForce)
}

// TestLabVolumeEvacuateKilled: the daemon is killed and the power goes while a volume
// moves; it goes on, and all that was synced is there.
func TestLabVolumeEvacuateKilled(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("STATE"), nvme("OLD"), nvme("SPARE")}})
	m.Sh("mkfs.ext4 -q /dev/%s", m.Name("STATE"))
	remember := func() { m.Sh("mkdir -p %s && mount /dev/%s %[1]s", lab.DaemonState, m.Name("STATE")) }
	remember()
	o := orchestrateBy(t, m, slowly)
	v := o.create("v", drivebay.BackingLVM, "ext4", 128<<20, "OLD")
	o.only()
	o.use(v)
	o.writes(v)
	o.Sh("head -c 8M /dev/urandom >%s/synced; sync %[1]s/synced; md5sum %[1]s/synced >%[1]s/synced.md5; sync %[1]s/synced.md5", v.target())
	o.lead("OLD", drivebay.LeaveRelease)
	o.midway("killed")
	o.Sh("kill -9 %d", o.d.PID())
	o.start()
	o.midway("cut")
	m.PowerCut()
	m.Must(m.Boot(t.Context()))
	remember()
	o.start()
	for began := time.Now(); ; { // as a kubelet does: the group may be between two steps
		err := o.stage(v)
		if err == nil {
			break
		}
		if status.Code(err) != codes.Aborted || time.Since(began) > moving {
			t.Fatal(err)
		}
	}
	for o.publish(v) != nil && t.Context().Err() == nil {
	}
	o.usage("OLD", drivebay.UsageReleased, moving)
	o.on([]string{"SPARE"}, v)
	m.Must(m.Unplug(t.Context(), "OLD"))
	o.Sh("echo 3 >/proc/sys/vm/drop_caches; md5sum -c --quiet %s/synced.md5", v.target())
	o.drop(v)
}

// TestLabVolumeEvacuatePulled: in the middle of a move somebody pulls the drive that it
// goes to. Who uses the volume does not notice, and when the drive is back the move
// comes to its end.
func TestLabVolumeEvacuatePulled(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("OLD"), nvme("SPARE")}})
	o := orchestrateBy(t, m, slowly)
	v := o.create("v", drivebay.BackingLVM, "ext4", 128<<20, "OLD")
	o.only()
	o.use(v)
	o.writes(v)
	o.lead("OLD", drivebay.LeaveRelease)
	o.midway("pulled")
	m.Must(m.Unplug(t.Context(), "SPARE"))
	o.d.UntilDrive("SPARE", "pulled", soon, is(drivebay.StatusOffline))
	time.Sleep(10 * time.Second)
	m.Must(m.Replug(t.Context(), "SPARE"))
	o.usage("OLD", drivebay.UsageReleased, moving)
	o.on([]string{"SPARE"}, v)
	o.wrote(v)
	o.well(v)
	o.drop(v)
}

// TestLabVolumeEvacuateFromPulled: in the middle of a move the drive that has to leave
// is pulled. The volume cannot be reached meanwhile; nothing is given up for it. When
// the drive is back the volume has all that it was ever said to have, and goes on its
// way.
func TestLabVolumeEvacuateFromPulled(t *testing.T) {
	t.Parallel()
	for _, name := range few("mounted", "block") {
		t.Run(name, func(t *testing.T) {
			fs := map[string]string{"mounted": "ext4", "block": ""}[name]
			m := lab.Start(t, machine.Spec{Drives: []machine.Drive{scsi("OLD", 0x5000c500b0000000), scsi("SPARE", 0x5000c500b0000001)}})
			o := orchestrateBy(t, m, strings.Replace(healing, "trigger: off", "trigger: off, throttle: 4", 1))
			v := o.create("v", drivebay.BackingLVM, fs, 128<<20, "OLD")
			o.only()
			o.use(v)
			look := func() string {
				return o.Sh("echo 3 >/proc/sys/vm/drop_caches; tail -c 64M %s | md5sum", v.target())
			}
			if fs == "" {
				o.Sh("dd if=/dev/urandom of=%s bs=1M count=128 oflag=direct status=none", v.target())
			} else {
				sum := o.write(v)
				look = func() string { o.intact(v, sum); return sum }
			}
			before := look()
			o.lead("OLD", drivebay.LeaveRelease)
			o.midway("pulled")
			if fs == "" {
				o.counts(v)
			}
			m.Must(m.Unplug(t.Context(), "OLD"))
			o.d.UntilDrive("OLD", "pulled", soon, is(drivebay.StatusOffline))
			time.Sleep(10 * time.Second)
			if is := o.view(v); is.OperationalStatus != drivebay.Missing || len(is.Condition) == 0 {
				t.Errorf("half of it is not there, and it is %+v", is)
			}
			m.Must(m.Replug(t.Context(), "OLD"))
			o.d.UntilDrive("OLD", "back", soon, is(drivebay.StatusOnline))
			if fs != "" {
				o.asks(v)
				look()
			}
			o.usage("OLD", drivebay.UsageReleased, moving)
			if fs == "" {
				o.counted(v)
			}
			o.on([]string{"SPARE"}, v)
			if after := look(); after != before {
				t.Errorf("it was %s, and is %s", before, after)
			}
			o.drop(v)
		})
	}
}

// counts has a pod write numbers to the blocks of a volume, until one cannot be
// written, and remember the last that was.
func (o *orchestrator) counts(v vol) {
	o.t.Helper()
	o.Sh(`(i=1000; while i=$((i+1)); printf %%4096s $i | dd of=%s bs=4k seek=$((i%%256)) iflag=fullblock oflag=direct conv=notrunc status=none; do echo $i >/run/counted; sleep 0.02; done; touch /run/stopped) </dev/null >/dev/null 2>/dev/null &
while [ ! -s /run/counted ] || [ "$(cat /run/counted)" -lt 1020 ]; do sleep 0.1; done`, v.target())
}

// counted wants the numbers to be there.
func (o *orchestrator) counted(v vol) {
	o.t.Helper()
	o.Sh("while [ ! -e /run/stopped ]; do sleep 0.2; done")
	o.t.Logf("%s written; there are not:%s", o.Sh("cat /run/counted"), o.Sh(`last=$(cat /run/counted); i=$((last-256)); [ $i -gt 1000 ] || i=1000
while i=$((i+1)); [ $i -le $last ]; do is=$(dd if=%s bs=4k skip=$((i%%256)) count=1 iflag=direct status=none | tr -d ' '); [ "$is" = $i ] || { echo " $i"; echo $i >/run/wrong; }; done`, v.target()))
	o.Sh("! test -e /run/wrong")
}

// TestLabVolumeEvacuateDied: a drive dies as the second of three linear volumes on it
// moves, or a thin pool with three, and is given up. What had moved serves on, as if
// nothing had been; the others are lost, say so, and can be forgotten; nothing of them
// is left on the other drive. The thin pool is for who has two minutes more (DRIVEBAY_LAB_LONG=1).
func TestLabVolumeEvacuateDied(t *testing.T) {
	t.Parallel()
	for backing, moved := range map[drivebay.Backing]int{drivebay.BackingLVM: 1, drivebay.BackingThin: 0} {
		if backing == drivebay.BackingThin && os.Getenv("DRIVEBAY_LAB_LONG") == "" {
			continue
		}
		t.Run(string(backing), func(t *testing.T) {
			o, saved, lost := halfMoved(t, backing, "OLD", moved)
			o.givenUp("OLD", lost)
			for _, v := range saved {
				o.rests(v, "SPARE")
				o.wrote(v)
				o.heals(v, soon, "DiskDegrading", "RWIOError") // it was on both drives as one of them went
				_, err := o.d.ExpandVolume(t.Context(), v.id, 96<<20, "")
				o.Must(err)
				o.drop(v)
				o.Must(o.remove(v))
			}
			o.Sh(`if dmsetup ls | grep drivebay; then exit 1; fi; test -z "$(lvm lvs --noheadings)"; test "$(head -c 1M /dev/%s | tr -d '\0' | wc -c)" = 0`, o.Name("SPARE"))
		})
	}
}

// TestLabVolumeEvacuateSpareDied: it is the drive that they move to. What had moved is
// lost, what had not serves on, and leaves for a third drive. The thin pool is for who
// has five minutes more (DRIVEBAY_LAB_LONG=1).
func TestLabVolumeEvacuateSpareDied(t *testing.T) {
	t.Parallel()
	for backing, moved := range map[drivebay.Backing]int{drivebay.BackingLVM: 1, drivebay.BackingThin: 0} {
		if backing == drivebay.BackingThin && os.Getenv("DRIVEBAY_LAB_LONG") == "" {
			continue
		}
		t.Run(string(backing), func(t *testing.T) {
			o, saved, lost := halfMoved(t, backing, "SPARE", moved)
			o.givenUp("SPARE", lost)
			o.only()
			o.usage("OLD", drivebay.UsageReleased, moving)
			o.on([]string{"THIRD"}, saved...)
			o.wrote(saved...)
			for _, v := range saved {
				o.heals(v, soon, "DiskDegrading", "RWIOError")
			}
			o.Sh("if dmsetup ls | grep pvmove; then exit 1; fi")
			o.drop(saved...)
		})
	}
}

// halfMoved has three volumes move from OLD to SPARE, and pulls one of these when so
// many have: what is whole without that drive, with pods that write to it, and what is
// not.
func halfMoved(t *testing.T, backing drivebay.Backing, dies string, moved int) (o *orchestrator, whole, lost []vol) {
	t.Helper()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{little("OLD"), little("SPARE"), little("THIRD")}})
	o = orchestrateBy(t, m, slowly)
	var all []vol
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, o.create(name, backing, "ext4", 64<<20, "OLD"))
	}
	slices.SortFunc(all, func(a, b vol) int { return strings.Compare(a.id, b.id) }) // so they go
	o.only("OLD", "SPARE")
	o.use(all...)
	if whole, lost = all[:moved], all[moved:]; dies == "SPARE" {
		whole, lost = lost, whole
	}
	o.writes(whole...)
	o.lead("OLD", drivebay.LeaveRelease)
	if moved > 0 {
		o.moves(all[moved])
	} else {
		o.midway("dies")
	}
	m.Must(m.Unplug(t.Context(), dies))
	o.d.UntilDrive(dies, "died", soon, is(drivebay.StatusOffline))
	return o, whole, lost
}

// givenUp gives a dead drive up, and what was on it.
func (o *orchestrator) givenUp(serial string, lost []vol) {
	o.t.Helper()
	d := o.d.BySerial(serial)
	if d.Usage == drivebay.UsageInUse {
		o.lead(serial, drivebay.LeaveRelease)
	}
	o.lead(serial, drivebay.LeaveForce)
	o.drop(lost...)
	for _, v := range lost {
		o.rests(v, serial)
		if is := o.view(v); is.OperationalStatus != drivebay.Missing {
			o.t.Errorf("%s is lost, and %v", v.name, is.OperationalStatus)
		}
		err := o.d.ForgetVolume(o.t.Context(), v.id)
		for n := 0; n < 60 && errors.Is(err, drivebay.ErrPending); n++ { // the daemon may deactivate it at that moment
			time.Sleep(time.Second)
			err = o.d.ForgetVolume(o.t.Context(), v.id)
		}
		o.Must(err)
	}
}

// rests waits until a volume is on these drives.
func (o *orchestrator) rests(v vol, serials ...string) {
	o.t.Helper()
	var on []string
	for _, serial := range serials {
		on = append(on, o.d.BySerial(serial).ID)
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		is := o.view(v)
		if slices.Equal(slices.Sorted(slices.Values(is.Location.Drives)), slices.Sorted(slices.Values(on))) {
			o.t.Logf("%s is on %s after %v, %v", v.name, on, time.Since(began).Round(time.Second), is.OperationalStatus)
			return
		}
		if time.Since(began) > moving {
			o.t.Fatalf("%s is on %v, not on %v", v.name, is.Location.Drives, on)
		}
	}
}

// TestLabVolumeEvacuateUnreadable: a sector below one of two volumes cannot be read.
// That volume stays, whole for whoever uses it, and names the sector; the other one
// goes. Without the first one the drive is empty.
func TestLabVolumeEvacuateUnreadable(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("OLD"), nvme("SPARE")}})
	o := orchestrate(t, m)
	bad, good := o.create("bad", drivebay.BackingLVM, "", 32<<20, "OLD"), o.create("good", drivebay.BackingLVM, "ext4", 64<<20, "OLD")
	o.only()
	o.use(bad, good)
	o.writes(good)
	const at = 9<<20 + 512
	o.Sh("dd if=/dev/urandom of=%s bs=1M count=32 oflag=direct status=none", bad.target())
	rest := func() string {
		return o.Sh("(dd if=%[1]s bs=1M count=9 iflag=direct status=none; dd if=%[1]s bs=1M skip=10 iflag=direct status=none) | md5sum", bad.target())
	}
	before := rest()
	where := o.view(bad).Location
	var part, data int64
	fmt.Sscan(o.Sh("cat /sys/class/block/%sp1/start; dmsetup table %s | cut -d' ' -f5", m.Name("OLD"), lvm.MapperName(where.VG, where.LV)), &part, &data)
	m.Must(m.FailIO(t.Context(), "OLD", machine.IOError{Op: "read", Sector: part + data + at/512}))
	o.lead("OLD", drivebay.LeaveRelease)
	o.usage("OLD", drivebay.UsageFailed, moving)
	want := fmt.Sprintf("512 bytes at (offset+length) %d+512 of it", at)
	o.untilCopy(bad, "named", func(v *drivebay.VolumeView) bool {
		return v.UsageFailure != nil && strings.Contains(v.UsageFailure.Cause, want)
	})
	if after := rest(); after != before {
		t.Errorf("what can be read of it is %s, was %s", after, before)
	}
	o.drop(bad)
	o.Must(o.remove(bad))
	o.lead("OLD", drivebay.LeaveRetry)
	o.usage("OLD", drivebay.UsageReleased, moving)
	o.on([]string{"SPARE"}, good)
	o.wrote(good)
	o.well(good)
	o.drop(good)
}
