package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/internal/api"
)

const (
	dataVolume = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	rawVolume  = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// volumeEngine is what a daemon would know of volumes, and what it was told to do.
type volumeEngine struct {
	*engine
	set     atomic.Pointer[drivebay.VolumeSet]
	pending atomic.Int32 // so many calls are answered while the work goes on
	resized bool         // what is expanded is mounted nowhere
	lacks   drivebay.Backing
	remains drivebay.Condition // what healing leaves
	unread  []string           // drives
}

// newVolumes puts a volume on each of two drives, judged by the real rules.
func newVolumes(e *engine) *volumeEngine {
	v := &volumeEngine{engine: e}
	set := &drivebay.VolumeSet{Seq: 1, Problems: []string{"LVM cannot be asked"}, Snapshots: []drivebay.VolumeSnapshot{{ID: "snap1", Name: "monday", Source: dataVolume, Size: 1 << 30}}}
	if len(e.Snapshot().Problems) == 0 { // all can be read there
		set.Problems = nil
	}
	for i, id := range []string{dataVolume, rawVolume} {
		d := e.Snapshot().Drives[i]
		f := drivebay.Facts{Complete: true, Drives: []drivebay.Drive{d}, Volume: drivebay.Volume{
			ID: id, Name: []string{"data-1", "raw-1"}[i], Size: 10 << 30, Mode: []drivebay.VolumeMode{drivebay.ModeFS, drivebay.ModeRawPart}[i],
			CSIStatus: drivebay.CSICreated, Usage: drivebay.VolumeInUse, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}}}}
		f.Volume.Health, f.Volume.OperationalStatus = condition.HealthOf(f), condition.OperationalStatusOf(f)
		set.Volumes = append(set.Volumes, &drivebay.VolumeView{Volume: f.Volume, Condition: condition.Of(f), Facts: &f})
	}
	v.set.Store(set)
	return v
}

func (v *volumeEngine) Volumes() *drivebay.VolumeSet { return v.set.Load() }
func (v *volumeEngine) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	for v.set.Load().Seq == after {
		if _, err := v.Wait(ctx, 0); err != nil {
			return nil, err
		}
	}
	return v.set.Load(), nil
}
func (v *volumeEngine) Unwritten() []string      { return nil }
func (v *volumeEngine) Newer() []string          { return nil }
func (v *volumeEngine) Unread() ([]string, bool) { return v.unread, true }
func (v *volumeEngine) Capabilities() drivebay.VolumeCapabilities {
	return drivebay.VolumeCapabilities{Snapshots: true}
}

// work is did, unless the work is still under way: then the next set comes soon.
func (v *volumeEngine) work(format string, args ...any) error {
	if v.pending.Add(-1) >= 0 {
		next := *v.set.Load()
		next.Seq++
		time.AfterFunc(50*time.Millisecond, func() { v.set.Store(&next); v.next <- *v.Snapshot() })
		return fmt.Errorf("volume x: %w", drivebay.ErrPending)
	}
	return v.did(format, args...)
}
func (v *volumeEngine) CreateVolume(_ context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	return drivebay.Volume{ID: "newid"}, v.work("create %s %+v block=%v fs=%q %+v %+v", r.Name, r.Size, r.Block, r.FSType, r.Class, r.Source)
}
func (v *volumeEngine) DeleteVolume(_ context.Context, id string) error {
	return v.work("delete %s", id)
}
func (v *volumeEngine) ExpandVolume(_ context.Context, id string, r drivebay.SizeRange) (drivebay.Volume, bool, error) {
	found, _ := v.Volumes().Get(id)
	grown := found.Volume
	if grown.Size = r.Required; v.resized {
		grown.CSIStatus = drivebay.CSIResized
	}
	return grown, v.resized, v.work("expand %s %+v", id, r)
}
func (v *volumeEngine) ExpandNode(_ context.Context, id, path string, r drivebay.SizeRange, _ drivebay.Secrets) (uint64, error) {
	return 0, v.work("grow %s %s %+v", id, path, r)
}
func (v *volumeEngine) CreateSnapshot(_ context.Context, name, id string) (drivebay.VolumeSnapshot, error) {
	return drivebay.VolumeSnapshot{ID: "newsnap"}, v.work("snapshot %s %s", name, id)
}
func (v *volumeEngine) DeleteSnapshot(_ context.Context, id string) error {
	return v.work("delete snapshot %s", id)
}
func (v *volumeEngine) Capacity(_ context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	if c.Backing == v.lacks {
		return drivebay.Capacity{}, fmt.Errorf("%s: %w: no LVM here", c.Backing, drivebay.ErrNoSupport)
	}
	return drivebay.Capacity{Available: 3 << 30, Largest: 2 << 30, Smallest: 1 << 20}, nil
}
func (v *volumeEngine) Room(context.Context, string, drivebay.RoomQuery) (drivebay.VolumeRoom, error) {
	return drivebay.VolumeRoom{}, nil
}
func (v *volumeEngine) ScrubVolume(_ context.Context, id string) error { return v.work("scrub %s", id) }
func (v *volumeEngine) Heal(_ context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	out := drivebay.HealReport{Volume: r.Volume, DryRun: r.DryRun}
	if r.Volume == rawVolume {
		out.Steps = []drivebay.HealStep{{Repair: "mount it", Why: "it is not mounted", Done: "it is mounted"}, {Repair: "bind it", Why: "it is not bound", Failed: "something\x1b is there"}}
	}
	if v.remains.Abnormal() {
		out.Steps, out.Remaining = nil, v.remains
	}
	return out, v.work("heal %s dry=%v fsck=%v %q", r.Volume, r.DryRun, r.Fsck, r.Options)
}
func (v *volumeEngine) RetryVolume(_ context.Context, id string) error { return v.work("retry %s", id) }
func (v *volumeEngine) ClearVolume(_ context.Context, id string) error { return v.work("clear %s", id) }
func (v *volumeEngine) AcceptLoss(_ context.Context, id string) error {
	return v.work("accept-loss %s", id)
}
func (v *volumeEngine) AdoptVolume(_ context.Context, id string) error {
	return v.work("adopt %s", id)
}

func (v *volumeEngine) ForgetVolume(_ context.Context, id string) error {
	return v.work("forget %s", id)
}
func (v *volumeEngine) MoveBeforeUse(_ context.Context, id string, on bool) error {
	return v.work("move %s before use %v", id, on)
}
func (v *volumeEngine) ReleaseVolume(_ context.Context, id string) error {
	return v.work("release %s", id)
}
func (v *volumeEngine) ForgetSnapshot(_ context.Context, id string) error {
	return v.work("forget snapshot %s", id)
}
func (v *volumeEngine) ForgetDrive(_ context.Context, id, _ string) error {
	return v.work("forget drive %s", id)
}

func TestReadingVolumes(t *testing.T) {
	e := newEngine(twoDrives())
	v := newVolumes(e)
	v.lacks = drivebay.BackingMirror
	env := daemonWith(t, e, api.Options{Volumes: v})
	for _, tc := range []struct {
		args      string
		want, not []string
	}{
		{"volumes", []string{"aaaaaaaaaa  data-1  10 GiB     -     -  FS", "sd1", "Slot 2", "OPERATIVE", "DiskFailure: ", "2 volumes: 2 OPERATIVE; 1 abnormal"}, []string{dataVolume}},
		{"volumes -o wide", []string{dataVolume, "CREATED", "IN_USE"}, nil},
		{"volumes --abnormal", []string{"raw-1", "1 volume: 1 OPERATIVE; 1 abnormal"}, []string{"data-1"}},
		{"volumes --abnormal -o yaml", []string{"reason: DiskFailure"}, []string{"data-1"}},
		{"volume show data-1", []string{dataVolume, "partition", "sd1  naa-aaaa01  Disk, serial SN1, bay Slot 1", "monday", "No fault is known."}, nil},
		{"volume show bbbbbb -o json", []string{`"id": "` + rawVolume + `"`, `"facts": {`}, nil},
		{"volume snapshots", []string{"snap1", "monday", "data-1"}, nil},
		{"volume snapshots -o json", []string{`"source": "` + dataVolume + `"`}, nil},
		{"explain raw-1", []string{"DEGRADED  DiskFailure", "it says so itself", "The drive below the volume:", "  BAD  ATAFailed", "what to do: Replace it.", "attributes"}, nil},
		{"explain data-1 -o yaml", []string{"name: data-1", "evidence:"}, nil},
		{"events --volume data-1", []string{"made"}, []string{"seen", "it died"}},
		{"events --volume " + rawVolume[:25] + "z", nil, []string{"made", "seen"}},
		{"explain sd2", []string{"ATAFailed"}, []string{"The drive below the volume"}},
		{"capacity", []string{"partition  3 GiB      2 GiB    1 MiB     no", "thin       3 GiB      2 GiB    1 MiB     yes", "mirror     -", "no LVM here"}, nil},
		{"capacity --backing thin", []string{"thin"}, []string{"partition"}},
		{"capacity -o json", []string{`"largest": 2147483648`, `"against": "mirror: not supported`}, nil},
	} {
		t.Run(tc.args, func(t *testing.T) {
			errs := prints(t, env, tc.args, tc.want, tc.not)
			if strings.HasPrefix(tc.args, "volumes") && !strings.Contains(errs, "note: LVM cannot be asked") {
				t.Errorf("what could not be seen is not said: %q", errs)
			}
		})
	}
}

func TestVolumesJSONIsTheAPIs(t *testing.T) {
	e := newEngine(twoDrives())
	out, errs, code := call(t, daemonWith(t, e, api.Options{Volumes: newVolumes(e)}), "volumes", "-o", "json")
	var got drivebay.VolumeSet
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got.Volumes) != 2 || !got.Volumes[1].Condition.Abnormal() {
		t.Errorf("%d %s %v: %+v", code, errs, err, got)
	}
}

func TestActingOnVolumes(t *testing.T) {
	const class = "{Drives:UNKNOWN Backing:partition Wipe:discard Encryption: FSType:ext4}"
	for _, tc := range []struct{ args, did, says string }{
		{"volume create new --size 10GiB", "create new {Required:10737418240 Limit:0} block=false fs=\"\" " + class + " {Snapshot: Volume:}", "newid\n"},
		{"volume create new --size 1MB --limit 2MB --block --backing lvm --class ssd --wipe zero", "create new {Required:1000000 Limit:2000000} block=true fs=\"\" {Drives:SSD Backing:lvm Wipe:zero Encryption: FSType:ext4} {Snapshot: Volume:}", "newid\n"},
		{"volume create new --fs xfs --param drivebay.io/wipe=zero --param drivebay.io/backing=thin --from-snapshot monday", "create new {Required:0 Limit:0} block=false fs=\"xfs\" {Drives:UNKNOWN Backing:thin Wipe:zero Encryption: FSType:ext4} {Snapshot:snap1 Volume:}", "newid\n"},
		{"volume create new --from-volume data-1", "create new {Required:0 Limit:0} block=false fs=\"\" " + class + " {Snapshot: Volume:" + dataVolume + "}", "newid\n"},
		{"volume delete data-1 --yes", "delete " + dataVolume, "volume " + dataVolume + " (data-1) deleted"},
		{"volume delete " + rawVolume + " --yes", "delete " + rawVolume, "deleted"},
		{"volume expand data-1 20GiB", "expand " + dataVolume + " {Required:21474836480 Limit:0}", "(data-1) has 20 GiB; its filesystem grows when it is mounted the next time"},
		{"volume snapshot aaaaaa friday", "snapshot friday " + dataVolume, "newsnap\n"},
		{"volume snapshot-delete monday --yes", "delete snapshot snap1", "snapshot snap1 (monday) deleted"},
		{"volume snapshot-forget monday --yes", "forget snapshot snap1", "snapshot snap1 (monday) forgotten"},
		{"volume retry data-1", "retry " + dataVolume, "(data-1) is retried"},
		{"volume clear data-1", "clear " + dataVolume, "cleared"},
		{"volume release data-1", "release " + dataVolume, "(data-1) released"},
		{"volume accept-loss data-1 --yes", "accept-loss " + dataVolume, "(data-1) continues without this data"},
		{"forget sd1", "forget drive naa-aaaa01", "drive naa-aaaa01 (sd1) is forgotten"},
		{"volume adopt found-elsewhere", "adopt found-elsewhere", "volume found-elsewhere adopted"},
		{"volume forget data-1 --yes", "forget " + dataVolume, "(data-1) forgotten"},
		{"scrub data-1", "scrub " + dataVolume, "is being checked; `drivebay volume show " + dataVolume + "` shows the verdict"},
		{"heal data-1", "heal " + dataVolume + " dry=false fsck=false []", "(data-1): nothing to repair"},
		{"heal raw-1 --dry-run --fsck --option noatime,nosuid", "heal " + rawVolume + ` dry=true fsck=true ["noatime" "nosuid"]`, "(raw-1):\n  to do     mount it\n            why: it is not mounted\n"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			e := newEngine(twoDrives())
			v := newVolumes(e)
			v.resized = true
			out, errs, code := call(t, daemonWith(t, e, api.Options{Volumes: v}), strings.Fields(tc.args)...)
			if code != 0 || len(e.done) != 1 || e.done[0] != tc.did || !strings.Contains(out, tc.says) {
				t.Errorf("exit status %d, did\n%q, want\n%q, said %q %q", code, e.done, tc.did, out, errs)
			}
		})
	}
}

// Work that outlasts a call is waited for by the same call again.
func TestLongWorkIsAwaited(t *testing.T) {
	e := newEngine(twoDrives())
	e.next = make(chan drivebay.Snapshot, 4)
	v := newVolumes(e)
	v.pending.Store(2)
	out, errs, code := call(t, daemonWith(t, e, api.Options{Volumes: v}), "volume", "create", "new")
	if code != 0 || out != "newid\n" || len(e.done) != 1 || strings.Count(errs, "note: the operation is in progress") != 1 {
		t.Errorf("exit status %d, did %q, said %q %q", code, e.done, out, errs)
	}
}

// What could not be repaired is said, and fails the command.
func TestHealFails(t *testing.T) {
	e := newEngine(twoDrives())
	out, errs, code := call(t, daemonWith(t, e, api.Options{Volumes: newVolumes(e)}), "heal", "raw-1")
	for _, want := range []string{"  done      mount it\n            why: it is not mounted\n            it is mounted\n", "  not done  bind it\n", "something? is there"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if code != exitFailure || !strings.Contains(errs, "not every repair succeeded") {
		t.Errorf("exit status %d, said %q", code, errs)
	}
}

// What no repair applies to is named, and fails the command, a dry run too.
func TestHealCannot(t *testing.T) {
	for _, args := range [][]string{{"heal", "data-1"}, {"heal", "data-1", "--dry-run"}} {
		e := newEngine(twoDrives())
		v := newVolumes(e)
		v.remains = drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: "DiskRemoved", Message: "the drive is gone"}}
		out, errs, code := call(t, daemonWith(t, e, api.Options{Volumes: v}), args...)
		if code != exitFailure || !strings.Contains(out, "no repair applies\n  remains   INACCESSIBLE DiskRemoved\n            the drive is gone\n") || strings.Contains(out, "nothing to repair") ||
			!strings.Contains(errs, "cannot repair DiskRemoved; `drivebay explain "+dataVolume+"`") {
			t.Errorf("%q: exit status %d\n%s\n%s", args, code, out, errs)
		}
	}
}

func TestVolumesWatchDrawsEveryChange(t *testing.T) {
	e := newEngine(twoDrives())
	e.next = make(chan drivebay.Snapshot)
	v := newVolumes(e)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs safeBuffer
	a := testApp(daemonWith(t, e, api.Options{Volumes: v}), &out, &errs)
	ended := make(chan int, 1)
	go func() { ended <- a.run(ctx, []string{"volumes", "--watch"}) }()
	same, fewer := *v.set.Load(), *v.set.Load()
	same.Seq, fewer.Seq, fewer.Volumes = 2, 3, fewer.Volumes[:1]
	for _, set := range []*drivebay.VolumeSet{&same, &fewer} {
		v.set.Store(set)
		e.next <- *e.Snapshot()
	}
	eventually(t, patience, func() bool { return strings.Contains(out.String(), "1 volume: 1 OPERATIVE") }, out.String)
	cancel()
	if code := <-ended; code != exitOK || strings.Count(out.String(), "2 volumes:") != 1 {
		t.Errorf("exit status %d: %s%s", code, out.String(), errs.String())
	}
}

func TestWrongCallsAboutVolumes(t *testing.T) {
	e := newEngine(twoDrives())
	v := newVolumes(e)
	twin := *v.set.Load().Volumes[0]
	twin.ID, twin.Name = "cccccccccccccccccccccccccc", "sd1"
	set := *v.set.Load()
	set.Volumes = append(set.Volumes, &twin)
	v.set.Store(&set)
	env := daemonWith(t, e, api.Options{Volumes: v})
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"volume sho data-1", exitUsage, `did you mean "show"?`},
		{"volume create", exitUsage, "accepts 1 arg"},
		{"volume create x --size much", exitUsage, `--size: invalid: "much" is no size`},
		{"volume create x --size 0", exitUsage, "must be greater than 0"},
		{"volume create x --limit -1", exitUsage, "is no size"},
		{"volume create x --fs ntfs", exitUsage, "want ext4, xfs, btrfs"},
		{"volume create x --fs ext4 --block", exitUsage, "cannot be used together"},
		{"volume create x --from-volume a --from-snapshot b", exitUsage, "cannot be used together"},
		{"volume create x --backing raid5", exitUsage, `"raid5"; want one of drive, lvm, mirror, partition, thin`},
		{"volume create x --param backing=thin", exitUsage, "there is no such parameter"},
		{"volume create x --param thin", exitUsage, "want KEY=VALUE"},
		{"volume create x --backing thin --param drivebay.io/backing=lvm", exitUsage, `is both "lvm" and "thin"`},
		{"volume create x --size 2GiB --limit 1GiB", exitFailure, "less than the size"},
		{"volume expand data-1 more", exitUsage, "is no size"},
		{"volume delete data-1", exitFailure, "volume " + dataVolume + " (data-1) of 10 GiB"},
		{"volume forget data-1", exitFailure, "would be forgotten and not wiped"},
		{"volume accept-loss data-1", exitFailure, "would be lost permanently"},
		{"volume delete aaaaaaa --yes", exitFailure, "whole ID or name"},
		{"volume snapshot-delete monday", exitFailure, "add --yes"},
		{"volume snapshot-forget monday", exitFailure, "add --yes"},
		{"volume snapshot-delete tuesday --yes", exitFailure, "not found"},
		{"volume show nothing", exitFailure, "`drivebay volumes` lists the volumes"},
		{"volume show ata-1", exitFailure, "did you mean one of these? " + dataVolume + " (data-1)"},
		{"explain nothing", exitFailure, "no volume has this ID or name either"},
		{"explain dat", exitFailure, "did you mean one of these?"},
		{"explain sd1", exitFailure, "it names drive naa-aaaa01 and volume cccccccccccccccccccccccccc: give the ID"},
		{"volumes -o xml", exitUsage, "want table, wide, json, yaml"},
		{"volumes --root /nowhere", exitFailure, "only the daemon knows the volumes"},
		{"capacity --local", exitFailure, "only the daemon knows the volumes"},
		{"capacity --class tape", exitUsage, "want one of any, hdd, nvme, ssd"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			out, errs, code := call(t, env, strings.Fields(tc.args)...)
			if code != tc.code || !strings.Contains(errs, tc.want) {
				t.Errorf("exit status %d, want %d: %q, want %q in it", code, tc.code, errs, tc.want)
			}
			if out != "" || len(e.done) > 0 {
				t.Errorf("something is on standard output: %q, or was done: %q", out, e.done)
			}
		})
	}
}

// Without a volume engine drives are explained as ever, and the rest says why not.
func TestNoVolumeEngine(t *testing.T) {
	env := daemonFor(t, newEngine(twoDrives()))
	if out, errs, code := call(t, env, "explain", "sd2"); code != 0 || !strings.Contains(out, "ATAFailed") {
		t.Errorf("explain: %d %q %q", code, out, errs)
	}
	for _, args := range []string{"volumes", "volume create x", "capacity", "scrub x"} {
		if _, errs, code := call(t, env, strings.Fields(args)...); code != exitFailure || !strings.Contains(errs, "makes no volumes") {
			t.Errorf("%s: %d %q", args, code, errs)
		}
	}
}
