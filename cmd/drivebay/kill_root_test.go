//go:build root

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/hack/loopdisk"
)

const (
	// killsUsual is how often the daemon is killed; DRIVEBAY_KILLS says another number.
	killsUsual = 20
	// killedPatience is how long a call may fail in a row. The daemon is killed all the time meanwhile.
	killedPatience = 2 * time.Minute
	killDriveSize  = 2 << 30
)

// TestRootKilled kills the daemon at random moments, with kill -9, under clients that repeat
// each call until it is done, as Kubernetes does. In the end no acknowledged byte is lost, no
// volume is stuck, and nothing is left of those that were deleted.
func TestRootKilled(t *testing.T) {
	kills := killsUsual
	if text := os.Getenv("DRIVEBAY_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("DRIVEBAY_KILLS: %v", err)
		}
	}
	r := newKillRack(t)
	free := r.capacity()
	var clients sync.WaitGroup
	var all []*killClient
	var over atomic.Bool
	for i, k := range []struct{ fs, backing string }{{"ext4", "partition"}, {"xfs", "partition"}, {"btrfs", "partition"}, {"", "partition"}, {"ext4", "drive"}} {
		c := &killClient{r: r, fs: k.fs, backing: k.backing, number: i, rng: rand.New(rand.NewPCG(uint64(i), 11))}
		all = append(all, c)
		clients.Go(func() { c.run(&over) })
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range kills {
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
		r.kill()
		r.launch()
		if t.Failed() {
			break
		}
	}
	over.Store(true)
	clients.Wait()
	cycles, calls, repeated := 0, 0, 0
	for _, c := range all {
		cycles, calls, repeated = cycles+c.cycles, calls+c.calls, repeated+c.repeated
	}
	t.Logf("%d kills: %d lives of volumes, %d calls, %d of them repeated", kills, cycles, calls, repeated)
	r.clean(free)
}

// killRack is a daemon in a process of its own, over loop devices.
type killRack struct {
	*testing.T
	dir, endpoint, mnt string
	files, devs        []string
	cmd                *exec.Cmd
	log                *os.File
}

func newKillRack(t *testing.T) *killRack {
	t.Helper()
	dir := shortDir(t)
	r := &killRack{T: t, dir: dir, endpoint: "unix://" + dir + "/csi", mnt: dir + "/mnt"}
	if err := os.Mkdir(r.mnt, 0o750); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f := fmt.Sprintf("%s/bay%d", dir, i)
		r.files, r.devs = append(r.files, f), append(r.devs, loopdisk.Make(t, f, killDriveSize))
	}
	var err error
	if r.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	r.launch()
	t.Cleanup(func() {
		r.kill()
		r.unmount()
		if t.Failed() {
			b, _ := os.ReadFile(r.log.Name())
			t.Logf("%s", b[max(0, len(b)-20000):])
		}
		r.log.Close()
	})
	eventually(t, 20*time.Second, func() bool { return r.capacity() > killDriveSize*3*9/10 }, func() string { return fmt.Sprint("capacity ", r.capacity()) })
	return r
}

// launch starts the daemon; its answers are waited for by those who want them.
func (r *killRack) launch() {
	r.Helper()
	r.cmd = exec.Command(os.Args[0], "serve", "--log-level", "warn", "--csi-endpoint", r.endpoint, "--loop", "--claim", "serial="+strings.Join(r.files, "; serial="), "--volume-roots", r.mnt)
	r.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "DRIVEBAY_KILLS=") }), asProgram+"=1", "DRIVEBAY_API=unix://"+r.dir+"/s", "DRIVEBAY_STATE_DIR="+r.dir+"/state", "DRIVEBAY_REPLACEMENT_TRIGGER=off")
	r.cmd.Stderr = r.log
	if err := r.cmd.Start(); err != nil {
		r.Fatal(err)
	}
}

func (r *killRack) kill() {
	_ = r.cmd.Process.Signal(syscall.SIGKILL)
	_ = r.cmd.Wait()
}

// unmount takes what a failed test left below our folder, the newest first.
func (r *killRack) unmount() {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		r.Error(err)
	}
	for _, line := range slices.Backward(strings.Split(string(table), "\n")) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], r.mnt+"/") {
			if err := syscall.Unmount(f[4], 0); err != nil {
				r.Errorf("unmount %s: %v", f[4], err)
			}
		}
	}
}

// ask makes one call.
func (r *killRack) ask(name string, request map[string]any) (a answered, err error) {
	b := []byte("{}")
	if request != nil {
		if b, err = json.Marshal(request); err != nil {
			return a, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text, err := csi.Call(ctx, r.endpoint, name, string(b))
	if err == nil {
		err = json.Unmarshal([]byte(text), &a)
	}
	return a, err
}

func (r *killRack) capacity() int64 {
	a, err := r.ask("GetCapacity", nil)
	if err != nil {
		return 0
	}
	return a.AvailableCapacity
}

// says is what commands print while the daemon runs.
func (r *killRack) says(commands ...string) string {
	var all strings.Builder
	for _, name := range commands {
		c := exec.Command(os.Args[0], name)
		c.Env = append(os.Environ(), asProgram+"=1", "DRIVEBAY_API=unix://"+r.dir+"/s")
		out, _ := c.CombinedOutput()
		fmt.Fprintf(&all, "$ %s\n%s", name, out)
	}
	return all.String()
}

// clean: what was deleted has left nothing.
func (r *killRack) clean(free int64) {
	r.Helper()
	eventually(r.T, 30*time.Second, func() bool { return r.capacity() == free }, func() string {
		return fmt.Sprintf("%d bytes are free, and %d were\n%s", r.capacity(), free, r.says("capacity", "drives", "volumes", "status"))
	})
	a, err := r.ask("ListVolumes", nil)
	if err != nil || len(a.Entries) > 0 {
		r.Errorf("volumes that are left: %+v, %v", a.Entries, err)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(table, []byte(r.mnt+"/")) {
		r.Errorf("mounts are left below %s: %s, %v", r.mnt, table, err)
	}
	left, err := os.ReadDir(r.mnt)
	if err != nil || len(left) > 0 {
		r.Errorf("places that are left: %v, %v", left, err)
	}
	for i, dev := range r.devs {
		parts, err := filepath.Glob("/sys/block/" + filepath.Base(dev) + "/" + filepath.Base(dev) + "p*")
		if err != nil || len(parts) > 0 {
			r.Errorf("partitions that are left: %v, %v", parts, err)
		}
		out, _ := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", r.files[i]).Output()
		if strings.TrimSpace(string(out)) != dev {
			r.Errorf("loop devices over %s: %s", r.files[i], out)
		}
	}
}

// killClient lives through the life of one volume after the other.
type killClient struct {
	r                       *killRack
	fs, backing             string
	number                  int
	rng                     *rand.Rand
	id, staging, target     string
	size                    int64
	data                    map[string][32]byte // file, or offset of a block volume, and what was acknowledged
	cycles, calls, repeated int
}

var errStuck = errors.New("stuck")

func (c *killClient) run(over *atomic.Bool) {
	for !over.Load() && !c.r.Failed() {
		if err := c.life(); err != nil {
			c.r.Errorf("client %d (%s on %s), life %d, volume %s: %v", c.number, c.fs, c.backing, c.cycles, c.id, err)
			return
		}
		c.cycles++
	}
}

// do repeats a call until it is done.
func (c *killClient) do(name string, request map[string]any) (answered, error) {
	c.calls++
	for end := time.Now().Add(killedPatience); ; {
		a, err := c.r.ask(name, request)
		if err == nil {
			return a, nil
		}
		if time.Now().After(end) {
			return a, fmt.Errorf("%s: %w: %w", name, errStuck, err)
		}
		c.repeated++
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *killClient) capability() map[string]any {
	if c.fs == "" {
		return map[string]any{"block": map[string]any{}, "accessMode": map[string]any{"mode": "SINGLE_NODE_WRITER"}}
	}
	return capability(c.fs)
}

// life is that of a volume, from its creation to its deletion.
func (c *killClient) life() error {
	c.data, c.size = map[string][32]byte{}, 128<<20
	switch {
	case c.fs == "xfs":
		c.size = 320 << 20
	case c.fs == "btrfs": // which grows from 256 MiB on
		c.size = 256 << 20
	case c.backing == "drive":
		c.size = 1 << 30
	}
	a, err := c.do("CreateVolume", map[string]any{"name": fmt.Sprintf("killed-%d-%d-%s", c.number, c.cycles%3, filepath.Base(c.r.dir)), "capacityRange": map[string]any{"requiredBytes": c.size},
		"volumeCapabilities": []any{c.capability()}, "parameters": map[string]any{"drivebay.io/backing": c.backing}})
	if err != nil {
		return err
	}
	c.id = a.Volume.VolumeID
	c.staging, c.target = filepath.Join(c.r.mnt, "staging-"+c.id), filepath.Join(c.r.mnt, "target-"+c.id)
	for turn := range 2 {
		if err := errors.Join(c.use(), c.verify(turn == 0), c.write(), c.write()); err != nil {
			return err
		}
		if turn == 0 && c.growable() && c.rng.IntN(2) == 0 {
			if err := c.grow(); err != nil {
				return err
			}
		}
		if err := errors.Join(c.write(), c.verify(false), c.disuse()); err != nil {
			return err
		}
	}
	if err := errors.Join(c.use(), c.verify(false), c.disuse()); err != nil {
		return err
	}
	_, err = c.do("DeleteVolume", map[string]any{"volumeId": c.id})
	return err
}

// growable says whether the kernel lets the daemon grow the volume while it is mounted: of ext4
// it wants a capability that a container may not have.
func (c *killClient) growable() bool {
	const sysResource = 24
	return c.backing == "partition" && (c.fs != "ext4" || capable(c.r.T, sysResource))
}

// capable says whether this process, and the daemon that it starts, have a capability.
func capable(t *testing.T, number uint) bool {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Error(err)
		return false
	}
	_, rest, _ := strings.Cut(string(b), "CapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		t.Error(err)
	}
	return set>>number&1 == 1
}

// use stages and publishes the volume; its staging folder is the client's, as it is the kubelet's.
func (c *killClient) use() error {
	if err := os.MkdirAll(c.staging, 0o750); err != nil {
		return err
	}
	_, err := c.do("NodeStageVolume", map[string]any{"volumeId": c.id, "stagingTargetPath": c.staging, "volumeCapability": c.capability()})
	if err == nil {
		_, err = c.do("NodePublishVolume", map[string]any{"volumeId": c.id, "stagingTargetPath": c.staging, "targetPath": c.target, "volumeCapability": c.capability()})
	}
	return err
}

func (c *killClient) disuse() error {
	_, err := c.do("NodeUnpublishVolume", map[string]any{"volumeId": c.id, "targetPath": c.target})
	if err == nil {
		_, err = c.do("NodeUnstageVolume", map[string]any{"volumeId": c.id, "stagingTargetPath": c.staging})
	}
	if err == nil {
		err = os.Remove(c.staging)
	}
	return err
}

// grow asks for more; where there is no room the volume stays as large as it is.
func (c *killClient) grow() error {
	request := map[string]any{"volumeId": c.id, "capacityRange": map[string]any{"requiredBytes": c.size + 32<<20}, "volumeCapability": c.capability()}
	for end := time.Now().Add(killedPatience); ; c.repeated++ {
		_, err := c.r.ask("ControllerExpandVolume", request)
		if err == nil {
			break
		}
		if strings.Contains(err.Error(), "OutOfRange") || strings.Contains(err.Error(), "ResourceExhausted") {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("ControllerExpandVolume: %w: %w", errStuck, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if c.fs == "" {
		return nil
	}
	_, err := c.do("NodeExpandVolume", map[string]any{"volumeId": c.id, "volumePath": c.target, "stagingTargetPath": c.staging, "capacityRange": map[string]any{"requiredBytes": c.size + 32<<20}, "volumeCapability": c.capability()})
	return err
}

const killChunk = 256 << 10

// write writes a chunk and has it on the disk when it returns.
func (c *killClient) write() error {
	b := make([]byte, killChunk)
	for i := range b {
		b[i] = byte(c.rng.Uint32())
	}
	name, at, path, mode := fmt.Sprint("file", c.rng.IntN(8)), int64(0), "", os.O_RDWR|os.O_CREATE
	if path = filepath.Join(c.target, name); c.fs == "" {
		at = c.rng.Int64N(c.size/killChunk) * killChunk
		name, path, mode = fmt.Sprint(at), c.target, os.O_RDWR
	}
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	c.data[name] = sha256.Sum256(b)
	return nil
}

// verify reads back all that was written. In a volume that is new there is nothing else.
func (c *killClient) verify(fresh bool) error {
	if fresh {
		if err := c.empty(); err != nil {
			return err
		}
	}
	for name, want := range c.data {
		at, path := int64(0), filepath.Join(c.target, name)
		if c.fs == "" {
			path = c.target
			at, _ = strconv.ParseInt(name, 10, 64) // it was written from a number
		}
		b := make([]byte, killChunk)
		if err := readAt(path, b, at); err != nil {
			return err
		}
		if sha256.Sum256(b) != want {
			return fmt.Errorf("%s does not read as it was written", name)
		}
	}
	return nil
}

func readAt(path string, b []byte, at int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// empty: nothing is in a new volume.
func (c *killClient) empty() error {
	if c.fs != "" {
		list, err := os.ReadDir(c.target)
		list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return e.Name() == "lost+found" })
		if err != nil || len(list) > 0 {
			return fmt.Errorf("a new volume has %v, %v", list, err)
		}
		return nil
	}
	b, blank := make([]byte, killChunk), make([]byte, killChunk)
	for at := int64(0); at < c.size; at += killChunk {
		if err := readAt(c.target, b, at); err != nil {
			return err
		}
		if !bytes.Equal(b, blank) {
			return fmt.Errorf("a new volume has old bytes at %d", at)
		}
	}
	return nil
}
