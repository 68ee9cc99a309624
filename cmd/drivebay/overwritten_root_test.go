//go:build root

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestRootOverwritten: another program wipes the front of volumes that are in no use. Each has the finding without a call for it, a stage is
// refused, and when the bytes are back the volume is sound.
func TestRootOverwritten(t *testing.T) {
	r := newLoopRack(t, "DRIVEBAY_POLL_TICK=100ms", "DRIVEBAY_POLL_EVIDENCE=10s", "DRIVEBAY_POLL_RESCAN=10s")
	heads := map[string][]byte{} // by device
	device := map[*mounted]string{}
	for _, v := range r.well {
		device[v] = r.source(v.staging)
		for _, name := range []string{"NodeUnpublishVolume", "NodeUnstageVolume"} {
			r.do(name, v.gone(name))
		}
		heads[device[v]] = make([]byte, 1<<20)
		f, err := os.OpenFile(device[v], os.O_RDWR, 0)
		r.must(err)
		_, err = f.ReadAt(heads[device[v]], 0)
		r.must(err)
		_, err = f.WriteAt(make([]byte, 1<<20), 0)
		r.must(err, f.Sync(), f.Close())
	}
	condition := func(v *mounted) *volumeCondition {
		return r.do("ControllerGetVolume", map[string]any{"volumeId": v.id}).Status.VolumeCondition
	}
	for _, v := range r.well {
		eventually(t, 90*time.Second, func() bool { return strings.Contains(condition(v).Message, "ContentOverwritten") }, func() string { return v.fs + ": " + condition(v).Message })
		_, _, err := r.call("NodeStageVolume", map[string]any{"volumeId": v.id, "stagingTargetPath": v.staging, "volumeCapability": capability(v.fs)}, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "FailedPrecondition") || !strings.Contains(err.Error(), "only a copy of the superblock of "+v.fs) {
			t.Errorf("%s is staged: %v", v.fs, err)
		}
	}
	for dev, b := range heads {
		f, err := os.OpenFile(dev, os.O_RDWR, 0)
		r.must(err)
		_, err = f.WriteAt(b, 0)
		r.must(err, f.Sync(), f.Close())
	}
	for _, v := range r.well {
		eventually(t, 150*time.Second, func() bool { return !strings.Contains(condition(v).Message, "ContentOverwritten") }, func() string { return v.fs + ": " + condition(v).Message })
		r.stage(v)
		if a, _ := r.stats(v); a.VolumeCondition.Abnormal {
			t.Errorf("%s, staged again: %s", v.fs, a.VolumeCondition.Message)
		}
	}
}

// source is the device that is mounted at a path.
func (r *loopRack) source(path string) string {
	r.Helper()
	b, err := os.ReadFile("/proc/self/mounts")
	r.must(err)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == path {
			return f[0]
		}
	}
	r.Fatalf("nothing is mounted at %s", path)
	return ""
}
