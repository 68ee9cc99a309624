//go:build root

package volume_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
	"golang.org/x/sys/unix"
)

// TestRootHeal breaks the mounts of every filesystem on a real kernel, and heals them;
// then it gives the free space back, mounted and not.
func TestRootHeal(t *testing.T) {
	rig, root := loopRig(t, 2), t.TempDir()
	rig.roots = []string{root}
	e, _, _ := rig.start(t)
	for name, r := range requestsOnPartitions() {
		if r.Block {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r.Name, r.Size.Required = name, 320<<20
			v, err := e.CreateVolume(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			h := &healed{T: t, e: e, v: v, files: rig.files, staging: filepath.Join(root, "staging"), target: filepath.Join(root, "target")}
			h.ok(os.MkdirAll(h.staging, 0o755))
			t.Cleanup(func() {
				h.ok(e.UnpublishVolume(context.Background(), v.ID, h.target), e.UnstageVolume(context.Background(), v.ID, h.staging), e.DeleteVolume(context.Background(), v.ID))
			})
			h.ok(e.StageVolume(t.Context(), drivebay.StageRequest{Volume: v.ID, Path: h.staging, Access: drivebay.AccessMultiWriter, Options: []string{"noatime"}}))
			h.ok(e.PublishVolume(t.Context(), drivebay.PublishRequest{Volume: v.ID, Staging: h.staging, Target: h.target, Access: drivebay.AccessMultiWriter}))
			h.ok(os.WriteFile(filepath.Join(h.target, "file"), []byte("data"), 0o600))

			h.expect("")
			h.ok(unix.Unmount(h.target, 0))
			h.expect("restore the bind mounts of pods")
			h.ok(unix.Unmount(h.staging, 0))
			h.expect("mount the filesystem")
			h.ok(unix.Unmount(h.target, 0), unix.Unmount(h.staging, 0))
			h.expect("mount the filesystem, restore the bind mounts of pods")
			inside, err := os.Open(filepath.Join(h.staging, "file")) // somebody has it in use
			h.ok(err)
			if !h.giveUp() {
				h.ok(inside.Close())
			} else {
				h.expect("!mount a failed filesystem again")
				h.ok(inside.Close())
				end := h.container()
				h.expect("!mount a failed filesystem again")
				end()
				h.expect("mount a failed filesystem again")
			}
			h.ok(os.WriteFile(filepath.Join(h.target, "other"), []byte("data"), 0o600))
			if b, err := os.ReadFile(filepath.Join(h.target, "file")); err != nil || string(b) != "data" {
				t.Errorf("%q, %v", b, err)
			}
			h.reclaim()
		})
	}
}

type healed struct {
	*testing.T
	e               *volume.Engine
	v               drivebay.Volume
	files           []string // below the drives
	staging, target string
}

func (h *healed) ok(errs ...error) {
	h.Helper()
	if err := errors.Join(errs...); err != nil {
		h.Fatal(err)
	}
}

// expect heals, tried before, and done again after it.
func (h *healed) expect(want string) {
	h.Helper()
	fs := false
	r := drivebay.HealRequest{Volume: h.v.ID, Path: h.target, Staging: h.staging, Block: &fs, Options: []string{"noatime"}}
	for _, again := range []bool{false, true} {
		if again && strings.Contains(want, "!") {
			return
		}
		if again {
			want = ""
		}
		report, err := h.e.Heal(h.Context(), r)
		h.ok(err)
		var got []string
		for _, s := range report.Steps {
			mark := ""
			if s.Failed != "" {
				mark = "!"
				h.Log(s.Failed)
			}
			got = append(got, mark+s.Repair)
		}
		if is := strings.Join(got, ", "); is != want {
			h.Fatalf("healed by %q, want %q: %+v", is, want, report)
		}
	}
	if view, ok := h.e.Volumes().Get(h.v.ID); !ok || view.CSIStatus != drivebay.CSIPublished || len(view.Publications) != 2 {
		h.Errorf("it is %+v", view)
	}
}

// container has the mounts of now for itself, until it ends.
func (h *healed) container() (end func()) {
	h.Helper()
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 1000")
	out, err := cmd.StdoutPipe()
	h.ok(err, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	h.ok(err)
	return func() {
		h.ok(cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
}

// giveUp has a filesystem do what it does after an error, where a kernel can be told
// to: ext4 turns read-only, XFS shuts down.
func (h *healed) giveUp() bool {
	h.Helper()
	switch h.v.FSType {
	case "ext4":
		h.ok(os.WriteFile("/sys/fs/ext4/"+h.device()+"/trigger_fs_error", []byte("test"), 0o200))
	case "xfs":
		out, err := exec.Command("xfs_io", "-x", "-c", "shutdown", h.staging).CombinedOutput()
		if err != nil {
			h.Fatalf("%s: %v", out, err)
		}
	default:
		return false
	}
	// Of some filesystems on some kernels only the log tells of it.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if view, _ := h.e.Volumes().Get(h.v.ID); view.Facts.FS != nil && (view.Facts.FS.Shutdown || view.Facts.FS.ReadOnly) {
			break
		}
		if time.Now().After(end) {
			h.Fatal("it is not seen that it has given up")
		}
	}
	if err := os.WriteFile(filepath.Join(h.target, "other"), nil, 0o600); err == nil {
		h.Fatal("it takes writes")
	}
	return true
}

// device is the kernel's name of what is staged.
func (h *healed) device() string {
	h.Helper()
	var st unix.Stat_t
	h.ok(unix.Stat(h.staging, &st))
	name, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	h.ok(err)
	return filepath.Base(name)
}

// reclaim: what a file that was removed has taken goes back to the file below the
// drive, through a mount that is seen, and through one that is not.
func (h *healed) reclaim() {
	h.Helper()
	for _, used := range []bool{true, false} {
		name := filepath.Join(h.target, "large")
		h.ok(os.WriteFile(name, []byte(strings.Repeat("large", 10<<20)), 0o600))
		unix.Sync()
		h.ok(os.Remove(name))
		unix.Sync()
		r := drivebay.ReclaimRequest{Volume: h.v.ID, Path: h.target, Staging: h.staging}
		if !used {
			h.ok(h.e.UnpublishVolume(h.Context(), h.v.ID, h.target), h.e.UnstageVolume(h.Context(), h.v.ID, h.staging))
			r.Path, r.Staging = "", ""
		}
		before := h.taken()
		// XFS frees what was removed in its own time (fs/xfs/xfs_icache.c, inodegc).
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			if _, err := h.e.Reclaim(h.Context(), r); err != nil {
				h.Fatal(err)
			}
			unix.Sync()
			after := h.taken()
			if after < before-32<<20 {
				break
			}
			if time.Now().After(end) {
				h.Fatalf("used %v: %d bytes are taken below the drives, %d before", used, after, before)
			}
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), h.v.ID) || strings.Contains(string(mounts), h.staging) {
		h.Errorf("something is still mounted: %v", err)
	}
}

// taken is how much of the files below the drives is there.
func (h *healed) taken() int64 {
	h.Helper()
	var sum int64
	for _, file := range h.files {
		var st unix.Stat_t
		h.ok(unix.Stat(file, &st))
		sum += st.Blocks * 512
	}
	return sum
}
