//go:build lab

package volume_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// replicationGoals are what a process is to do with two volumes of one machine that replicate each other.
var replicationGoals = map[string]func(context.Context, labDaemon) error{
	"replicate": func(ctx context.Context, e labDaemon) error {
		for _, name := range []string{"a", "b"} {
			if _, err := e.CreateVolume(ctx, drivebay.VolumeRequest{Name: name, Size: drivebay.SizeRange{Required: 16 << 20}, Class: e.class}); err != nil {
				return err
			}
		}
		a, b := ports()
		from, to := replicateFrom(volumeOf(e, "a"), a, b, true), replicateFrom(volumeOf(e, "b"), b, a, false)
		if volumeOf(e, "a").Replication == nil {
			if err := e.useFiles(ctx, "a", "before"); err != nil {
				return err
			}
		}
		if err := errors.Join(e.EnableReplication(ctx, replicateFromAs(from, "both")), e.EnableReplication(ctx, replicateFromAs(to, "both"))); err != nil {
			return err
		}
		return e.untilReady(ctx)
	},
	"grow": func(ctx context.Context, e labDaemon) error {
		for _, name := range []string{"b", "a"} {
			if _, _, err := e.ExpandVolume(ctx, idOf(e, name), drivebay.SizeRange{Required: 24 << 20}); err != nil {
				return err
			}
		}
		if err := e.useFiles(ctx, "a", "grown", "before"); err != nil { // the device grows where it is staged
			return err
		}
		for _, name := range []string{"a", "b"} {
			for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
				view, err := e.ReplicationView(ctx, idOf(e, name))
				if err == nil && view.Bytes >= 24<<20 {
					break
				}
				if time.Now().After(end) {
					return fmt.Errorf("volume %s has not grown: %+v, %w", name, view, err)
				}
			}
		}
		return e.untilReady(ctx)
	},
	"disable": func(ctx context.Context, e labDaemon) error {
		err := errors.Join(e.DisableReplication(ctx, replicationOf(volumeOf(e, "a"))), e.DisableReplication(ctx, replicationOf(volumeOf(e, "b"))))
		if err != nil {
			return err
		}
		return errors.Join(e.useFiles(ctx, "a", "plain", "before", "grown"), e.useFiles(ctx, "b", "plain", "before", "grown"))
	},
	"make": func(ctx context.Context, e labDaemon) error {
		_, err := e.CreateVolume(ctx, drivebay.VolumeRequest{Name: "a", Size: drivebay.SizeRange{Required: 16 << 20}, Class: e.class})
		if err != nil {
			return err
		}
		return e.useFiles(ctx, "a", "before")
	},
	"enable": func(ctx context.Context, e labDaemon) error {
		a, b := ports()
		return e.EnableReplication(ctx, replicateFrom(volumeOf(e, "a"), a, b, true))
	},
	"give up": func(ctx context.Context, e labDaemon) error {
		if err := e.DisableReplication(ctx, replicationOf(volumeOf(e, "a"))); err != nil {
			return err
		}
		if v, _ := e.Volumes().Find("a"); v.Replication != nil || v.Condition.Abnormal() {
			return fmt.Errorf("after it was given up: %+v, %v", v.Replication, v.Condition)
		}
		return errors.Join(e.useFiles(ctx, "a", "after", "before"), e.DeleteVolume(ctx, idOf(e, "a")))
	},
	"remove": func(ctx context.Context, e labDaemon) error {
		return errors.Join(e.DeleteVolume(ctx, idOf(e, "a")), e.DeleteVolume(ctx, idOf(e, "b")))
	},
}

func ports() (a, b netip.AddrPort) {
	return netip.MustParseAddrPort("127.0.0.1:7800"), netip.MustParseAddrPort("127.0.0.1:7801")
}

func volumeOf(e labDaemon, name string) drivebay.Volume {
	if v, ok := e.Volumes().Find(name); ok {
		return v.Volume
	}
	return drivebay.Volume{ID: "none"}
}

// useFiles stages a volume, wants the files in have, and writes one with its own name.
func (e labDaemon) useFiles(ctx context.Context, name, write string, have ...string) error {
	v := volumeOf(e, name)
	path := staging(v)
	if err := errors.Join(os.MkdirAll(path, 0o755), e.StageVolume(ctx, drivebay.StageRequest{Volume: v.ID, Path: path, Access: drivebay.AccessWriter})); err != nil {
		return err
	}
	for _, file := range have {
		if b, err := os.ReadFile(filepath.Join(path, file)); err != nil || string(b) != file {
			return fmt.Errorf("volume %s, file %s: %q, %w", name, file, b, err)
		}
	}
	return errors.Join(os.WriteFile(filepath.Join(path, write), []byte(write), 0o600), e.UnstageVolume(ctx, v.ID, path))
}

// untilReady waits until both volumes have the same data.
func (e labDaemon) untilReady(ctx context.Context) error {
	for _, name := range []string{"a", "b"} {
		for end := time.Now().Add(4 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			info, err := e.ReplicationInfo(ctx, idOf(e, name))
			if err == nil && info.Status == drivebay.ReplicationHealthy {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("volume %s: %+v, %w", name, info, err)
			}
		}
	}
	return nil
}

// TestLabReplicationKilled has the daemon killed by SIGKILL after every step of the calls of replication that have some, on a kernel
// with DRBD, and started again until it comes to its end.
func TestLabReplicationKilled(t *testing.T) {
	tool(t, "ip", "link", "set", "lo", "up")
	at := t.TempDir()
	for _, goal := range []string{"replicate", "grow", "disable", "remove"} {
		var steps []string
		for n := 1; ; {
			step := killedAfter(t, at, drivebay.BackingPartition, goal, n)
			if step == "" {
				break
			}
			if slices.Contains(steps, step) { // a disk that was detached is attached first after a restart, and would be detached again for ever
				n++
			}
			if steps = append(steps, step); len(steps) == 30 {
				t.Fatalf("%s does not come to its end: %q", goal, steps)
			}
		}
		if t.Logf("%s: killed after each of %q", goal, steps); len(steps) < 2 {
			t.Errorf("%s was killed %d times", goal, len(steps))
		}
	}
}

// TestLabReplicationGivenUp has the daemon killed after each step of a replication that is enabled; the next one disables it, and has a plain volume.
func TestLabReplicationGivenUp(t *testing.T) {
	tool(t, "ip", "link", "set", "lo", "up")
	for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		at, kills := t.TempDir(), 0
		for n := 1; ; n++ {
			killedAfter(t, at, backing, "make", 0)
			step := killedAfter(t, at, backing, "enable", n)
			killedAfter(t, at, backing, "give up", 0)
			if step == "" {
				break
			}
			kills++
			t.Logf("%s: given up after %q", backing, step)
		}
		if kills < 4 {
			t.Errorf("%s: killed %d times", backing, kills)
		}
	}
}
