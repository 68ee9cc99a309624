//go:build lab

package volume_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// Of a process that is to do one thing with volumes, and to die after each step.
const (
	goalKey    = "DRIVEBAY_GOAL"
	dirKey     = "DRIVEBAY_DIR"
	backingKey = "DRIVEBAY_BACKING"
	afterKey   = "DRIVEBAY_AFTER"
	stopKey    = "DRIVEBAY_STOP" // set: it stops there, and somebody else decides what becomes of it
	stepMark   = "step: "
)

// labDaemon is what such a process has.
type labDaemon struct {
	*volume.Engine
	mgr   *drivemgr.Manager
	class drivebay.Class
}

var labGoals = map[string]func(context.Context, labDaemon) error{
	"create": func(ctx context.Context, e labDaemon) error {
		v, err := e.CreateVolume(ctx, drivebay.VolumeRequest{Name: "v", Size: drivebay.SizeRange{Required: 64 << 20}, Class: e.class})
		if err == nil && (v.CSIStatus != drivebay.CSICreated || len(e.Volumes().Volumes) != 2) {
			err = fmt.Errorf("%v, of %d volumes", v.CSIStatus, len(e.Volumes().Volumes))
		}
		return err
	},
	"clone": func(ctx context.Context, e labDaemon) error {
		s, err := e.CreateSnapshot(ctx, "s", idOf(e, "v"))
		if err != nil {
			return err
		}
		_, err = e.CreateVolume(ctx, drivebay.VolumeRequest{Name: "c", Class: e.class, Source: drivebay.Source{Snapshot: s.ID}})
		return err
	},
	"expand": func(ctx context.Context, e labDaemon) error {
		_, _, err := e.ExpandVolume(ctx, idOf(e, "v"), drivebay.SizeRange{Required: 96 << 20})
		return err
	},
	"delete": func(ctx context.Context, e labDaemon) error {
		err := errors.Join(e.DeleteVolume(ctx, idOf(e, "c")), e.DeleteVolume(ctx, idOf(e, "v")))
		for _, s := range e.Volumes().Snapshots {
			err = errors.Join(err, e.DeleteSnapshot(ctx, s.ID))
		}
		return err
	},
	// What is beside it all the time, and is not to change.
	"neighbour": func(ctx context.Context, e labDaemon) error {
		r := drivebay.VolumeRequest{Name: "n", Block: true, Size: drivebay.SizeRange{Required: 32 << 20}, Class: e.class}
		v, err := e.CreateVolume(ctx, r)
		if err != nil {
			return err
		}
		path := staging(v)
		if err := errors.Join(os.MkdirAll(path, 0o755), e.StageVolume(ctx, drivebay.StageRequest{Volume: v.ID, Path: path, Block: true, Access: drivebay.AccessWriter})); err != nil {
			return err
		}
		at := os.Getenv(dirKey)
		return errors.Join(os.WriteFile(at+"/vg", []byte(v.Location.VG), 0o600), os.WriteFile(at+"/lv", []byte(v.Location.LV), 0o600))
	},
	"blank": func(ctx context.Context, e labDaemon) error {
		v, ok := e.Volumes().Find("n")
		if !ok {
			return nil
		}
		if v.Rest() != drivebay.CSICreated {
			if err := e.UnstageVolume(ctx, v.ID, staging(v.Volume)); err != nil {
				return err
			}
		}
		return e.DeleteVolume(ctx, v.ID)
	},
}

func idOf(e labDaemon, name string) string {
	if v, ok := e.Volumes().Find(name); ok {
		return v.ID
	}
	return "none"
}

// TestLabKilled has the daemon killed by SIGKILL after every step that it does on
// real drives with LVM, and started again until it comes to its end.
func TestLabKilled(t *testing.T) {
	if goal := os.Getenv(goalKey); goal != "" {
		labGoal(t, goal)
		return
	}
	for backing, goals := range map[drivebay.Backing][]string{
		drivebay.BackingThin: {"create", "clone", "expand", "delete"},
		drivebay.BackingLVM:  {"create", "expand", "delete"},
	} {
		t.Run(string(backing), func(t *testing.T) {
			at := t.TempDir()
			until := func(goal string) {
				began := time.Now()
				steps := untilDone(t, at, backing, goal)
				if t.Logf("%s: killed after each of %q, in %v", goal, steps, time.Since(began).Round(time.Second)); len(steps) == 0 {
					t.Errorf("%s was never killed", goal)
				}
			}
			until("neighbour")
			vg, lv := text(t, at+"/vg"), text(t, at+"/lv")
			dev := "/dev/mapper/" + strings.ReplaceAll(vg, "-", "--") + "-" + strings.ReplaceAll(lv, "-", "--")
			tool(t, "dd", "if=/dev/urandom", "of="+dev, "bs=1M", "oflag=direct", "count=32")
			look := func() string {
				return tool(t, "md5sum", dev) + tool(t, "lvm", "lvs", "--noheadings", "-a", "-o", "lv_name,lv_size,lv_attr", vg) + tool(t, "lvm", "vgs", "-o", "vg_free", vg)
			}
			before := look()
			for _, goal := range goals {
				until(goal)
			}
			if after := look(); after != before {
				t.Errorf("in the beginning\n%s\nin the end\n%s", before, after)
			}
			until("blank")
			if left := tool(t, "lvm", "pvs", "--noheadings") + tool(t, "lsblk", "-rno", "NAME,TYPE"); strings.Contains(left, "part") || strings.Contains(left, "drivebay") {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// untilDone starts a process until it comes to its end, and returns the steps after
// which it was killed.
func untilDone(t *testing.T, at string, backing drivebay.Backing, goal string) (steps []string) {
	t.Helper()
	for len(steps) < 30 {
		step := killedAfter(t, at, backing, goal, 1)
		if step == "" {
			return steps
		}
		steps = append(steps, step)
	}
	t.Fatalf("%s does not come to its end: %q", goal, steps)
	return nil
}

// killedAfter starts a process that is killed after its n-th step, and returns which
// that was; "": it came to its end before.
func killedAfter(t *testing.T, at string, backing drivebay.Backing, goal string, n int) (step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLabKilled$", "-test.v")
	cmd.Env = append(os.Environ(), goalKey+"="+goal, dirKey+"="+at, backingKey+"="+string(backing), afterKey+"="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return ""
	case !ended || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL:
		t.Fatalf("%s, to be killed after step %d: %v\n%s", goal, n, err, out)
	}
	_, step, _ = strings.Cut(string(out), stepMark)
	step, _, _ = strings.Cut(step, "\n")
	return step
}

// labGoal is such a process.
func labGoal(t *testing.T, goal string) {
	do, ok := labGoals[goal]
	if !ok {
		do = replicationGoals[goal]
	}
	machine, err := host.Real("/")
	if err != nil {
		t.Fatal(err)
	}
	at, backing := os.Getenv(dirKey), drivebay.Backing(os.Getenv(backingKey))
	st, err := store.Open(filepath.Join(at, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("serial=" + string(backing) + "*")); err != nil {
		t.Fatal(err)
	}
	after, _ := strconv.Atoi(os.Getenv(afterKey)) // 0: never
	ctx, cancel := context.WithCancel(t.Context())
	mgr := drivemgr.New(machine, st, drivemgr.Options{Claim: claim})
	var steps atomic.Int64
	opt := volume.Options{Node: "lab", DRBD: drbd.OpenKernel, After: func(_, step string) error {
		if steps.Add(1) != int64(after) {
			return nil
		}
		fmt.Println(stepMark + step)
		end := syscall.SIGKILL
		if os.Getenv(stopKey) != "" {
			end = syscall.SIGSTOP
		}
		return syscall.Kill(os.Getpid(), end)
	}}
	e, err := volume.New(machine, mgr, st, lvm.New(machine, ""), opt)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- mgr.Run(ctx) }()
	go func() { ended <- e.Run(ctx) }()
	class := drivebay.Class{Backing: backing, Wipe: drivebay.WipeDiscard, FSType: "ext4"}
	for claimed := false; e.Volumes().Seq == 0 || !claimed; time.Sleep(20 * time.Millisecond) {
		for _, d := range mgr.Snapshot().Drives {
			claimed = claimed || d.Claim != nil
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // what is taken up again is at work already, and drives are being read
		err = do(ctx, labDaemon{e, mgr, class})
		if !errors.Is(err, drivebay.ErrPending) && (!errors.Is(err, drivebay.ErrUnavailable) || time.Now().After(end)) {
			break
		}
	}
	cancel()
	if err := errors.Join(err, <-ended, <-ended); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func tool(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}
