//go:build root

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The budgets for a disk in trouble. Every call has a connection of its own, and
// that is in its time. The pace of volumes on other disks may be 1.2 of what it was;
// hack/bench holds that, where nothing else runs, and here only a wait is found.
const (
	hangSeen   = 10 * time.Second
	errorsSeen = 5 * time.Second
	answerTime = time.Second          // the slowest answer, until it is known that the disk hangs
	hungPace   = 5 * time.Millisecond // and the median once it is
	otherPace  = 2
)

// TestRootHungDrive: a disk that answers nothing is seen as such while others
// wait for it, delays no answer and no other volume, and is well when it answers.
func TestRootHungDrive(t *testing.T) {
	r := newLoopRack(t)
	hung, idle := r.sick[0], r.sick[1]
	stop := r.use(hung)
	before := r.pace(r.well)
	for _, v := range r.sick {
		if a, _ := r.stats(v); a.VolumeCondition.Abnormal {
			t.Fatalf("%s, before: %s", v.fs, a.VolumeCondition.Message)
		}
	}
	threads := r.tasks()

	r.disk.Hang(true)
	began := time.Now()
	slowest := time.Duration(0)
	eventually(t, 2*hangSeen, func() bool {
		a, took := r.stats(hung)
		slowest = max(slowest, took)
		return a.VolumeCondition.Abnormal
	}, func() string { return "a hung disk is normal" })
	seen := time.Since(began)
	if seen > hangSeen || slowest > answerTime {
		t.Errorf("the hang was seen after %v, the slowest answer until then took %v", seen, slowest)
	}
	eventually(t, 40*time.Second, func() bool {
		a, _ := r.stats(hung)
		return strings.Contains(a.VolumeCondition.Message, "IOStalled")
	}, func() string { a, _ := r.stats(hung); return a.VolumeCondition.Message })
	if a, _ := r.stats(idle); !a.VolumeCondition.Abnormal {
		t.Errorf("the other volume of the drive: %+v", a)
	}
	during, sick := r.pace(r.well), r.pace(r.sick)
	t.Logf("hang seen after %v, slowest answer until then %v; stats of a volume on the hung disk %v, of the others %v, before %v; threads %d, before %d",
		seen, slowest, sick, during, before, r.tasks(), threads)
	if sick > hungPace || during > otherPace*before+time.Millisecond {
		t.Errorf("stats of a volume on the hung disk take %v, of the others %v, before %v", sick, during, before)
	}
	r.wires(hung, true)
	r.wires(r.well[0], false)

	r.heal()
	stop()
	eventually(t, 20*time.Second, func() bool {
		a, _ := r.stats(hung)
		return !strings.Contains(a.VolumeCondition.Message, "IOStalled")
	}, func() string { return "requests come back, and it is called hung" })
	if _, errs, code := call(t, r.env, "drive", "acknowledge", r.disk.Path()); code != 0 { // or half an hour without another hang
		t.Fatal(errs)
	}
	for _, v := range r.sick {
		eventually(t, 90*time.Second, func() bool { a, _ := r.stats(v); return !a.VolumeCondition.Abnormal },
			func() string { a, _ := r.stats(v); return a.VolumeCondition.Message })
		r.wires(v, false)
	}
}

// TestRootHungForAnHour: a disk that hangs for long costs a thread, however often
// it is asked and whoever wants to be rid of it.
func TestRootHungForAnHour(t *testing.T) {
	r := newLoopRack(t, "DRIVEBAY_POLL_TICK=100ms", "DRIVEBAY_POLL_EVIDENCE=10s", "DRIVEBAY_POLL_RESCAN=10s")
	stop := r.use(r.sick[0])
	r.pace(r.sick)
	r.disk.Hang(true)
	eventually(t, 20*time.Second, func() bool { a, _ := r.stats(r.sick[0]); return a.VolumeCondition.Abnormal }, func() string { return "a hung disk is normal" })
	threads := r.tasks()
	var most int
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // 300 ticks, 3 looks at each drive, thousands of calls
		for _, v := range slices.Concat(r.sick, r.well) {
			r.stats(v)
		}
		most = max(most, r.tasks())
	}
	t.Logf("threads: %d when the hang was seen, then at most %d, in the end %d", threads, most, r.tasks())
	if most > threads+2 { // the runtime may need another for itself
		t.Errorf("%d threads, and at most %d later", threads, most)
	}
	r.letGo()

	r.heal()
	stop()
	for _, v := range r.sick {
		for _, name := range []string{"NodeUnpublishVolume", "NodeUnstageVolume"} {
			var err error
			eventually(t, 20*time.Second, func() bool { _, _, err = r.call(name, v.gone(name), time.Minute); return err == nil }, func() string { return err.Error() })
		}
	}
}

// letGo unmounts on the hung disk what can be unmounted, and all else meanwhile.
func (r *loopRack) letGo() {
	r.Helper()
	const patience = 3 * time.Second
	for _, v := range r.sick {
		_, one, err1 := r.call("NodeUnpublishVolume", v.gone("NodeUnpublishVolume"), patience)
		_, two, err2 := r.call("NodeUnstageVolume", v.gone("NodeUnstageVolume"), patience)
		_, three, err3 := r.call("NodeUnstageVolume", v.gone("NodeUnstageVolume"), patience)
		r.Logf("%s on the hung disk: unpublished %v after %v; unstaged %v after %v; again %v after %v", v.fs, err1, one, err2, two, err3, three)
		if err2 == nil || max(one, two, three) > patience+time.Second {
			r.Errorf("%s on the hung disk is let go: %v, %v after %v", v.fs, err1, err2, max(one, two, three))
		}
	}
	for _, v := range r.well {
		began := time.Now()
		r.do("NodeUnpublishVolume", v.gone("NodeUnpublishVolume"))
		r.do("NodeUnstageVolume", v.gone("NodeUnstageVolume"))
		if took := time.Since(began); took > 2*time.Second {
			r.Errorf("%s on another disk is let go after %v", v.fs, took)
		}
		r.stage(v)
	}
}

// TestRootFailingDrive: a disk that answers with errors is not called sound, and
// its volumes are used again when it has recovered.
func TestRootFailingDrive(t *testing.T) {
	r := newLoopRack(t)
	var stops []func()
	for _, v := range r.sick {
		stops = append(stops, r.use(v))
	}
	r.pace(r.sick)
	r.disk.Fail(true)
	began := time.Now()
	for _, v := range r.sick {
		eventually(t, 2*errorsSeen, func() bool { a, _ := r.stats(v); return a.VolumeCondition.Abnormal }, func() string { return "a failing disk is normal" })
		if seen := time.Since(began); seen > errorsSeen {
			t.Errorf("%s: errors seen after %v", v.fs, seen)
		}
		t.Logf("%s: errors seen after %v", v.fs, time.Since(began))
	}
	for _, v := range r.sick {
		// XFS gives up when it cannot write its log, which it does every 30 s where nothing asks for
		// it (fs.xfs.xfssyncd_centisecs, Documentation/admin-guide/xfs.rst).
		eventually(t, 45*time.Second, func() bool {
			a, _ := r.stats(v)
			return serious.MatchString(a.VolumeCondition.Message)
		}, func() string { a, _ := r.stats(v); return a.VolumeCondition.Message })
		a, _ := r.stats(v)
		t.Logf("%s after %v: %s", v.fs, time.Since(began), a.VolumeCondition.Message)
		r.wires(v, true)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		for _, v := range r.sick {
			if a, took := r.stats(v); !a.VolumeCondition.Abnormal || took > answerTime {
				t.Fatalf("%s is normal while its disk fails: %+v after %v", v.fs, a, took)
			}
		}
		for _, v := range r.well {
			if a, took := r.stats(v); a.VolumeCondition.Abnormal || took > answerTime {
				t.Fatalf("%s on another disk: %s after %v", v.fs, a.VolumeCondition.Message, took)
			}
		}
	}
	r.heal()
	for _, stop := range stops {
		stop()
	}
	for _, v := range r.sick {
		r.do("NodeUnpublishVolume", v.gone("NodeUnpublishVolume"))
		r.do("NodeUnstageVolume", v.gone("NodeUnstageVolume"))
		r.stage(v)
		r.must(os.WriteFile(v.target+"/again", []byte("data"), 0o600))
		eventually(t, 90*time.Second, func() bool { a, _ := r.stats(v); return !serious.MatchString(a.VolumeCondition.Message) },
			func() string { a, _ := r.stats(v); return a.VolumeCondition.Message })
	}
}

// serious are the reasons for which every access fails.
var serious = regexp.MustCompile(`ReadOnlyFilesystem|FilesystemShutdown|PathUnreadable|cannot be read`)

// pace is the median of what stats of volumes take.
func (r *loopRack) pace(of []*mounted) time.Duration {
	r.Helper()
	var took []time.Duration
	for range 50 {
		for _, v := range of {
			_, d := r.stats(v)
			took = append(took, d)
		}
	}
	return median(took)
}

// wires: all that tell of a volume say the same of it, at once.
func (r *loopRack) wires(v *mounted, ill bool) {
	r.Helper()
	ask := func(name string, request map[string]any) answered {
		r.Helper()
		a, took, err := r.call(name, request, 10*time.Second)
		if err != nil || took > answerTime {
			r.Errorf("%s: %v after %v", name, err, took)
		}
		return a
	}
	listed := ask("ListVolumes", nil).Entries
	i := slices.IndexFunc(listed, func(e entry) bool { return e.Volume.VolumeID == v.id })
	if i < 0 {
		r.Fatalf("%s is not listed", v.id)
	}
	id := map[string]any{"volumeId": v.id}
	got := map[string]bool{
		"ListVolumes":               listed[i].Status.VolumeCondition.Abnormal,
		"ControllerGetVolume":       ask("ControllerGetVolume", id).Status.VolumeCondition.Abnormal,
		"ControllerGetVolumeHealth": len(ask("ControllerGetVolumeHealth", id).VolumeHealth.HealthStatuses) > 0,
		"NodeGetVolumeHealth":       len(ask("NodeGetVolumeHealth", map[string]any{"volumeId": v.id, "volumePublishPath": v.target, "stagingTargetPath": v.staging}).VolumeHealth.HealthStatuses) > 0,
	}
	for name, abnormal := range got {
		if abnormal != ill {
			r.Errorf("%s says that %s is abnormal: %v", name, v.fs, abnormal)
		}
	}
	ask("NodeGetStorageHealth", nil)
	ask("ControllerListVolumeHealth", nil)
}
