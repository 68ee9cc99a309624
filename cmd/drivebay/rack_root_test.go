//go:build root

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/hack/fusedisk"
	"github.com/drivebay/drivebay/hack/loopdisk"
)

// loopRack is a daemon of its own process over loop devices, one of which misbehaves
// on demand, with volumes that are staged and published over CSI. What hangs there
// hangs a thread of the daemon and none of ours: we are the disk.
type loopRack struct {
	*testing.T
	env      map[string]string
	endpoint string
	root     string // volumes are mounted below it
	pid      int
	disk     *fusedisk.Disk
	sick     []*mounted // on that disk
	well     []*mounted
}

// mounted is a volume with its places.
type mounted struct{ id, fs, staging, target string }

// newLoopRack makes three drives, and on each a volume of every filesystem. The
// settings are those of the daemon's environment.
func newLoopRack(t *testing.T, settings ...string) *loopRack {
	t.Helper()
	dir := shortDir(t)
	r := &loopRack{T: t, endpoint: "unix://" + dir + "/csi", root: dir + "/mnt",
		env: map[string]string{"DRIVEBAY_API": "unix://" + dir + "/s", "DRIVEBAY_STATE_DIR": dir + "/state"}}
	for _, folder := range []string{"sick", "mnt"} {
		r.must(os.Mkdir(filepath.Join(dir, folder), 0o750))
	}
	const size = 1 << 30
	var err error
	r.disk, err = fusedisk.New(dir+"/sick", size)
	r.must(err)
	t.Cleanup(func() {
		if err := r.disk.Close(); err != nil {
			t.Error(err)
		}
	})
	files := []string{r.disk.Path(), dir + "/bay1", dir + "/bay2"}
	for _, f := range files {
		if f == r.disk.Path() {
			loopdisk.Attach(t, f)
		} else {
			loopdisk.Make(t, f, size)
		}
	}
	r.serve(append(settings, "DRIVEBAY_REPLACEMENT_TRIGGER=off"), "--loop", "--claim", "serial="+strings.Join(files, "; serial="), "--volume-roots", r.root)
	r.fill(size)
	return r
}

func (r *loopRack) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// serve runs the daemon in a process of its own.
func (r *loopRack) serve(settings []string, args ...string) {
	r.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"serve", "--csi-endpoint", r.endpoint, "--log-level", "debug"}, args...)...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), settings...)
	for k, v := range r.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var out safeBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	r.must(cmd.Start())
	r.pid = cmd.Process.Pid
	r.Cleanup(func() {
		r.must(cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err != nil {
			r.Errorf("the daemon ends with %v", err)
		}
		if r.Failed() {
			r.Log(out.String())
		}
	})
	eventually(r.T, 20*time.Second, func() bool { return strings.Contains(out.String(), "try: drivebay drives") }, out.String)
}

// call makes a CSI call as a kubelet does, over a connection of its own, and says
// how long that took.
func (r *loopRack) call(name string, request map[string]any, within time.Duration) (answer answered, took time.Duration, err error) {
	r.Helper()
	b := []byte("{}")
	if request != nil {
		var err error
		b, err = json.Marshal(request)
		r.must(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	began := time.Now()
	text, err := csi.Call(ctx, r.endpoint, name, string(b))
	took = time.Since(began)
	if err == nil {
		r.must(json.Unmarshal([]byte(text), &answer))
	}
	return answer, took, err
}

// answered is what of the answers is looked at.
type answered struct {
	Volume struct {
		VolumeID string `json:"volumeId"`
	}
	AvailableCapacity int64 `json:",string"`
	VolumeCondition   *volumeCondition
	Status            struct{ VolumeCondition *volumeCondition }
	Entries           []entry
	VolumeHealth      struct {
		HealthStatuses []struct{ Reason string }
	}
	Usage []struct {
		Total int64 `json:",string"`
	}
}

type entry struct {
	Volume struct {
		VolumeID string `json:"volumeId"`
	}
	Status struct{ VolumeCondition *volumeCondition }
}

type volumeCondition struct {
	Abnormal bool
	Message  string
}

func (r *loopRack) do(name string, request map[string]any) answered {
	r.Helper()
	a, _, err := r.call(name, request, time.Minute)
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	return a
}

func capability(fs string) map[string]any {
	return map[string]any{"mount": map[string]any{"fsType": fs}, "accessMode": map[string]any{"mode": "SINGLE_NODE_WRITER"}}
}

// fill makes the volumes and uses them.
func (r *loopRack) fill(size int64) {
	r.Helper()
	eventually(r.T, 20*time.Second, func() bool { // UNAVAILABLE while a drive is not read yet
		a, _, err := r.call("GetCapacity", nil, time.Minute)
		return err == nil && a.AvailableCapacity > 3*size*9/10
	}, func() string {
		out, errs, _ := call(r.T, r.env, "claim")
		return "not all drives can be used:\n" + out + errs
	})
	for i, fs := range []string{"ext4", "ext4", "ext4", "xfs", "xfs", "xfs"} {
		id := r.do("CreateVolume", map[string]any{"name": fmt.Sprint(fs, i), "capacityRange": map[string]any{"requiredBytes": 320 << 20},
			"volumeCapabilities": []any{capability(fs)}}).Volume.VolumeID
		v := &mounted{id, fs, filepath.Join(r.root, "staging-"+id), filepath.Join(r.root, "target-"+id)}
		r.stage(v)
		if r.on(id) == r.disk.Path() {
			r.sick = append(r.sick, v)
		} else {
			r.well = append(r.well, v)
		}
	}
	r.Cleanup(func() {
		r.heal()
		for _, v := range slices.Concat(r.well, r.sick) {
			r.do("NodeUnpublishVolume", v.gone("NodeUnpublishVolume"))
			r.do("NodeUnstageVolume", v.gone("NodeUnstageVolume"))
		}
	})
	if len(r.sick) != 2 || r.sick[0].fs == r.sick[1].fs {
		r.Fatalf("%d volumes are on the drive that will be sick", len(r.sick))
	}
}

func (r *loopRack) stage(v *mounted) {
	r.Helper()
	r.do("NodeStageVolume", map[string]any{"volumeId": v.id, "stagingTargetPath": v.staging, "volumeCapability": capability(v.fs)})
	r.do("NodePublishVolume", map[string]any{"volumeId": v.id, "stagingTargetPath": v.staging, "targetPath": v.target, "volumeCapability": capability(v.fs)})
}

// gone is the request of one of the two calls that let it go.
func (v *mounted) gone(call string) map[string]any {
	if call == "NodeUnpublishVolume" {
		return map[string]any{"volumeId": v.id, "targetPath": v.target}
	}
	return map[string]any{"volumeId": v.id, "stagingTargetPath": v.staging}
}

// on is the serial of the drive that a volume is on: of a loop device, its file.
func (r *loopRack) on(id string) string {
	r.Helper()
	out, errs, code := call(r.T, r.env, "volume", "show", id, "-o", "json")
	var v struct {
		Facts struct{ Drives []drivebay.Drive }
	}
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || len(v.Facts.Drives) != 1 {
		r.Fatalf("volume show: %d %v %s %s", code, err, errs, out)
	}
	return v.Facts.Drives[0].Serial
}

// stats asks for a volume's and says how long that took.
func (r *loopRack) stats(v *mounted) (answered, time.Duration) {
	r.Helper()
	a, took, err := r.call("NodeGetVolumeStats", map[string]any{"volumeId": v.id, "volumePath": v.target, "stagingTargetPath": v.staging}, 10*time.Second)
	if err != nil {
		r.Fatalf("NodeGetVolumeStats of %s: %v after %v", v.fs, err, took)
	}
	if a.VolumeCondition == nil || len(a.Usage) == 0 || a.Usage[0].Total == 0 {
		r.Fatalf("NodeGetVolumeStats of %s: %+v", v.fs, a)
	}
	return a, took
}

// use has a process write to a volume all the time, as a database does.
func (r *loopRack) use(v *mounted) (stop func()) {
	r.Helper()
	done := filepath.Join(r.TempDir(), "done")
	cmd := exec.Command("sh", "-c", `until [ -e "$1" ]; do dd if=/dev/zero of="$0" bs=4k count=8 conv=fsync; sleep 0.05; done`, v.target+"/file", done)
	r.must(cmd.Start())
	stop = sync.OnceFunc(func() {
		r.must(os.WriteFile(done, nil, 0o600))
		_ = cmd.Wait()
	})
	r.Cleanup(stop)
	return stop
}

// tasks is how many threads the daemon has.
func (r *loopRack) tasks() int {
	r.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.pid))
	r.must(err)
	return len(all)
}

// heal lets the disk work again; who uses it comes to his end by then.
func (r *loopRack) heal() {
	r.disk.Hang(false)
	r.disk.Fail(false)
}

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }
