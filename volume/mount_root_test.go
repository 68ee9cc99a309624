//go:build root

package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRootMounts uses volumes on real kernels: every filesystem and a device, to
// the end of what a pod's life brings.
func TestRootMounts(t *testing.T) {
	// A root is a link to another folder, as /var/lib/kubelet is where the system disk
	// was too small.
	rig, root := loopRig(t, 2), filepath.Join(t.TempDir(), "kubelet")
	if err := os.Symlink(t.TempDir(), root); err != nil {
		t.Fatal(err)
	}
	rig.roots = []string{root}
	e, _, _ := rig.start(t)
	for name, r := range requestsOnPartitions() {
		t.Run(name, func(t *testing.T) {
			r.Name, r.Size.Required = name, 320<<20
			v, err := e.CreateVolume(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			stage := drivebay.StageRequest{Volume: v.ID, Path: filepath.Join(root, "staging"), Block: r.Block, Access: drivebay.AccessMultiWriter}
			publish := drivebay.PublishRequest{Volume: v.ID, Staging: stage.Path, Target: filepath.Join(root, "target"), Block: r.Block, Access: drivebay.AccessMultiWriter}
			reader := publish
			reader.Target, reader.ReadOnly = filepath.Join(root, "reader"), true
			ok := func(errs ...error) {
				t.Helper()
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { ok(e.DeleteVolume(context.Background(), v.ID)) })
			t.Cleanup(func() {
				for _, path := range []string{publish.Target, reader.Target} {
					ok(e.UnpublishVolume(context.Background(), v.ID, path))
				}
				ok(e.UnstageVolume(context.Background(), v.ID, stage.Path))
			})
			ok(os.MkdirAll(stage.Path, 0o755))
			for range 2 {
				ok(e.StageVolume(t.Context(), stage), e.PublishVolume(t.Context(), publish))
			}
			if err := e.DeleteVolume(t.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
				t.Errorf("deleted while it is published: %v", err)
			}
			if r.Block {
				useDevice(t, e, publish, reader)
				return
			}
			file := filepath.Join(publish.Target, "file")
			ok(os.WriteFile(file, []byte("data"), 0o600), e.PublishVolume(t.Context(), reader))
			if err := os.WriteFile(filepath.Join(reader.Target, "file"), nil, 0o600); err == nil {
				t.Error("a reader writes")
			}
			before := statsOf(t, e, v, publish)
			if _, _, err := e.ExpandVolume(t.Context(), v.ID, drivebay.SizeRange{Required: 400 << 20}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.ExpandNode(t.Context(), v.ID, publish.Target, drivebay.SizeRange{}, nil); v.FSType == "ext4" && !mayResizeExt4(t) {
				if view, _ := e.Volumes().Get(v.ID); !errors.Is(err, drivebay.ErrPermission) || view.CSIStatus != drivebay.CSIFailed {
					t.Errorf("grown without being allowed to: %v, %v", err, view.CSIStatus)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			if after := statsOf(t, e, v, publish); after.Bytes.Total < before.Bytes.Total+32<<20 || after.Condition.Abnormal() {
				t.Errorf("grown from %d bytes to %d: %s", before.Bytes.Total, after.Bytes.Total, after.Condition.Message())
			}
			ok(e.ScrubVolume(t.Context(), v.ID))
			for range 1000 {
				if view, _ := e.Volumes().Get(v.ID); view.Facts.FS.Scrub != nil {
					if view.Facts.FS.Scrub.Corrupt > 0 || view.Condition.Abnormal() {
						t.Errorf("checked: %+v, %s", view.Facts.FS.Scrub, view.Condition.Message())
					}
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Error("the check comes to no end")
		})
	}
}

// mayResizeExt4: the kernel wants CAP_SYS_RESOURCE for it (fs/ext4/resize.c,
// ext4_resize_begin), which many containers lack.
func mayResizeExt4(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(text), "CapEff:")
	bits, err := strconv.ParseUint(strings.Fields(mask)[0], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bits&(1<<24) != 0
}

func statsOf(t *testing.T, e *volume.Engine, v drivebay.Volume, p drivebay.PublishRequest) drivebay.VolumeStats {
	t.Helper()
	s, err := e.Stats(t.Context(), drivebay.StatsRequest{Volume: v.ID, Path: p.Target, Staging: p.Staging})
	if err != nil || s.Bytes.Total == 0 || s.Bytes.Total > v.Size+v.Size/2 {
		t.Fatalf("%+v, %v", s, err)
	}
	return s
}

// useDevice: a device that is published read-only cannot be written to.
func useDevice(t *testing.T, e *volume.Engine, writer, reader drivebay.PublishRequest) {
	write := func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_SYNC, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("data"), 0)
		return errors.Join(err, f.Close())
	}
	if err := write(writer.Target); err != nil {
		t.Errorf("a writer cannot write: %v", err)
	}
	if err := e.PublishVolume(t.Context(), reader); !errors.Is(err, drivebay.ErrBusy) {
		t.Errorf("a reader beside a writer: %v", err)
	}
	if err := errors.Join(e.UnpublishVolume(t.Context(), writer.Volume, writer.Target), e.PublishVolume(t.Context(), reader)); err != nil {
		t.Fatal(err)
	}
	if err := write(reader.Target); err == nil {
		t.Error("a reader writes")
	}
}
