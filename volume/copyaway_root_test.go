//go:build root

package volume_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRootCopyAway: a filesystem and a block volume leave a real block device, each
// with every byte that was in it.
func TestRootCopyAway(t *testing.T) {
	rig, root := loopRig(t, 2), t.TempDir()
	rig.roots = []string{root}
	e, mgr, _ := rig.start(t)
	for name, r := range map[string]drivebay.VolumeRequest{"ext4": requests()["ext4 on a partition"], "block": requests()["a partition"]} {
		t.Run(name, func(t *testing.T) {
			ok := func(errs ...error) {
				t.Helper()
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			}
			r.Name, r.Size.Required = name, 128<<20
			v, err := e.CreateVolume(t.Context(), r)
			ok(err)
			stage := drivebay.StageRequest{Volume: v.ID, Path: filepath.Join(root, "staging-"+name), Block: r.Block, Access: drivebay.AccessSingleWriter}
			publish := drivebay.PublishRequest{Volume: v.ID, Staging: stage.Path, Target: filepath.Join(root, "target-"+name), Block: r.Block, Access: drivebay.AccessSingleWriter}
			file := publish.Target
			if !r.Block {
				file = filepath.Join(file, "file")
			}
			use := func(do func()) {
				t.Helper()
				ok(os.MkdirAll(stage.Path, 0o755), e.StageVolume(t.Context(), stage), e.PublishVolume(t.Context(), publish))
				do()
				ok(e.UnpublishVolume(t.Context(), v.ID, publish.Target), e.UnstageVolume(t.Context(), v.ID, stage.Path))
			}
			var before, after string
			use(func() {
				noise, err := os.Open("/dev/urandom")
				ok(err)
				defer noise.Close()
				f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
				ok(err)
				_, err = io.CopyN(f, noise, 64<<20)
				ok(err, f.Sync(), f.Close())
				before = sumOf(t, file)
			})
			ok(mgr.Operate(t.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
			began := time.Now()
			is := untilMoved(t, e, v)
			t.Logf("%d bytes were moved in %v", is.Size, time.Since(began))
			use(func() { after = sumOf(t, file) })
			if before != after || is.Condition.Abnormal() {
				t.Errorf("%s before, %s after, %v", before, after, is.Condition)
			}
			ok(e.DeleteVolume(t.Context(), v.ID))
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				if d, _ := mgr.Snapshot().Find(v.Location.Drives[0]); d.Usage == drivebay.UsageReleased && d.Content.Kind == drivebay.ContentBlank {
					break
				} else if time.Now().After(end) {
					t.Fatalf("the old drive is %v, %v", d.Usage, d.Content)
				}
			}
			ok(mgr.Operate(t.Context(), v.Location.Drives[0], drivebay.LeaveCancel, ""))
		})
	}
}

func sumOf(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyN(h, f, 64<<20); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func untilMoved(t *testing.T, e *volume.Engine, v drivebay.Volume) *drivebay.VolumeView {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		is, there := e.Volumes().Get(v.ID)
		if there && is.Location.Drives[0] != v.Location.Drives[0] && is.Work == "" {
			return is
		}
		if time.Now().After(end) {
			t.Fatalf("it has not moved: %+v, %q", is.Volume, is.Work)
		}
	}
}
