//go:build root

package volume_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/loopdisk"
	"github.com/drivebay/drivebay/volume"
)

// TestRootMakeRoom: on one real block device a volume grows by a move of its own, and,
// while a mount or a pod has it, by a move of the one behind it. What was written is
// there afterwards, and what a block volume has more reads as zeros.
func TestRootMakeRoom(t *testing.T) {
	for name, r := range map[string]drivebay.VolumeRequest{"xfs": requests()["xfs on a partition"], "block": requests()["a partition"]} {
		for what, used := range map[string]bool{"itself": false, "the one behind it": true} {
			t.Run(name+"/"+what, func(t *testing.T) { rootMakeRoom(t, r, used) })
		}
	}
}

func rootMakeRoom(t *testing.T, r drivebay.VolumeRequest, used bool) {
	file, _ := loopdisk.New(t, 4<<30)
	root := t.TempDir()
	rig := rig{files: []string{file}, roots: []string{root}}
	e, _, _ := rig.start(t)
	var vols []*rootVolume
	for _, name := range []string{"a", "b"} {
		vols = append(vols, newRootVolume(t, e, root, name, r))
	}
	a, b := vols[0], vols[1]
	for _, v := range vols {
		v.use(t)
		v.fill(t)
		if v != a || !used {
			v.disuse(t)
		}
	}
	const size = 2000 << 20
	began := time.Now()
	for end := began.Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		_, _, err := e.ExpandVolume(t.Context(), a.ID, drivebay.SizeRange{Required: size})
		if err == nil {
			break
		}
		if !errors.Is(err, drivebay.ErrPending) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	t.Logf("it has grown after %v", time.Since(began))
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if is, _ := e.Volumes().Get(a.ID); is.Work == "" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("it is still at work: %+v", is)
		}
	}
	isA, _ := e.Volumes().Get(a.ID)
	isB, _ := e.Volumes().Get(b.ID)
	movedA, movedB := isA.Location.Partition != a.Location.Partition, isB.Location.Partition != b.Location.Partition
	if movedA == used || movedB != used {
		t.Errorf("a moved: %v, b moved: %v", movedA, movedB)
	}
	if !used {
		a.use(t)
	}
	if _, err := e.ExpandNode(t.Context(), a.ID, a.target, drivebay.SizeRange{}, nil); err != nil {
		t.Error(err)
	}
	b.use(t)
	for _, v := range vols {
		v.check(t)
	}
	if r.Block {
		f, err := os.Open(a.target)
		if err != nil {
			t.Fatal(err)
		}
		rest := make([]byte, 1<<20)
		for at := int64(a.Size); at < size; at += int64(len(rest)) {
			if _, err := f.ReadAt(rest, at); err != nil || !bytes.Equal(rest, make([]byte, len(rest))) {
				t.Fatalf("what it has more is not zero at %d: %v", at, err)
			}
		}
		f.Close()
	}
	for _, v := range vols {
		if is, _ := e.Volumes().Get(v.ID); is.Condition.Abnormal() {
			t.Errorf("volume %s: %v", v.Name, is.Condition)
		}
		v.disuse(t)
		if err := e.DeleteVolume(t.Context(), v.ID); err != nil {
			t.Error(err)
		}
	}
}

// rootVolume is a volume on a real block device, with what was written to it.
type rootVolume struct {
	drivebay.Volume
	e               *volume.Engine
	staging, target string
	file            string
	content         []byte
}

func newRootVolume(t *testing.T, e *volume.Engine, root, name string, r drivebay.VolumeRequest) *rootVolume {
	t.Helper()
	r.Name, r.Size.Required = name, 320<<20
	v, err := e.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	out := &rootVolume{Volume: v, e: e, staging: filepath.Join(root, "staging-"+name), target: filepath.Join(root, "target-"+name)}
	if out.file = out.target; !r.Block {
		out.file = filepath.Join(out.target, "file")
	}
	t.Cleanup(func() { // after a failure: the next test would find the drive in use
		unix.Unmount(out.target, unix.MNT_DETACH)
		unix.Unmount(out.staging, unix.MNT_DETACH)
	})
	return out
}

func (v *rootVolume) use(t *testing.T) {
	t.Helper()
	block := v.Mode != drivebay.ModeFS
	err := errors.Join(os.MkdirAll(v.staging, 0o755),
		v.e.StageVolume(t.Context(), drivebay.StageRequest{Volume: v.ID, Path: v.staging, Block: block, Access: drivebay.AccessSingleWriter}),
		v.e.PublishVolume(t.Context(), drivebay.PublishRequest{Volume: v.ID, Staging: v.staging, Target: v.target, Block: block, Access: drivebay.AccessSingleWriter}))
	if err != nil {
		t.Fatal(err)
	}
}

func (v *rootVolume) disuse(t *testing.T) {
	t.Helper()
	if err := errors.Join(v.e.UnpublishVolume(t.Context(), v.ID, v.target), v.e.UnstageVolume(t.Context(), v.ID, v.staging)); err != nil {
		t.Fatal(err)
	}
}

func (v *rootVolume) fill(t *testing.T) {
	t.Helper()
	v.content = make([]byte, 96<<20)
	if _, err := rand.Read(v.content); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(v.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(v.content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func (v *rootVolume) check(t *testing.T) {
	t.Helper()
	f, err := os.Open(v.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, len(v.content))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, v.content) {
		t.Errorf("volume %s holds something else now: %v", v.Name, err)
	}
}
