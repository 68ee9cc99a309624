package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/drivebay/drivebay/hack/lab/image"
)

// preload is in memory before a machine is saved: loading a module into an
// emulated machine takes up to a second, and every test would pay it.
var preload = strings.Fields(`nvme usb_storage uas xfs btrfs dm_thin_pool dm_raid raid1 dm_snapshot dm_crypt
	9p 9pnet_virtio virtio_net tcm_loop target_core_user ses sg`)

// savedState finds the saved machine of this shape, or boots one and saves it.
func savedState(ctx context.Context, opt Options, spec Spec) (string, error) {
	version, err := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("run qemu: %w", err)
	}
	state := filepath.Join(opt.Cache, "state-"+spec.stateKey(opt.Image, string(version)))
	if _, err := os.Stat(state); err == nil {
		return state, os.Chtimes(state, time.Now(), time.Now())
	}
	unlock, err := image.Lock(ctx, opt.Cache, "saved machine", opt.Log)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(state); err == nil {
		return state, nil // somebody else made it while we waited
	}
	image.Prune(opt.Cache, "state-*", 3*24*time.Hour)
	began := time.Now()
	fmt.Fprintln(opt.Log, "lab: booting a machine to save it ...")
	if err := save(ctx, opt, spec, state); err != nil {
		return "", fmt.Errorf("save a machine: %w", err)
	}
	fmt.Fprintf(opt.Log, "lab: machine saved in %.0f s\n", time.Since(began).Seconds())
	return state, nil
}

// stateKey names all that a saved machine is made of.
func (s Spec) stateKey(img *image.Image, qemu string) string {
	parts := append([]string{img.ID, qemu, strings.Join(preload, " ")}, s.shape(img)...)
	for _, d := range s.Drives {
		if d.cold() {
			d.File = "" // blank, wherever it lies
			parts = append(parts, asJSON(d))
		}
	}
	return image.Key(parts...)
}

// save boots a machine with the drives that cannot be added later and writes its
// memory to a file.
func save(ctx context.Context, opt Options, spec Spec, state string) error {
	var cold []Drive
	for _, d := range spec.Drives {
		if d.cold() {
			d.File = ""
			cold = append(cold, d)
		}
	}
	spec.Drives, spec.Shares = cold, nil
	m, err := Start(ctx, Options{Image: opt.Image, Cache: opt.Cache, Log: opt.Log, Cold: true}, spec)
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := m.Guest.Shell(ctx, "modprobe -a "+strings.Join(preload, " ")); err != nil {
		return err
	}
	if err := m.Settle(ctx); err != nil {
		return err
	}
	if _, err := m.Guest.Shell(ctx, "sync; echo 3 >/proc/sys/vm/drop_caches"); err != nil {
		return err
	}
	// The agent must be waiting for its first byte when the machine is frozen.
	reopened := m.control.Expect("VSERPORT_CHANGE", func(data json.RawMessage) bool {
		var e struct {
			ID   string
			Open bool
		}
		return json.Unmarshal(data, &e) == nil && e.ID == "agent-port" && e.Open
	})
	m.Guest.Close()
	if err := reopened.Done(ctx); err != nil {
		return err
	}
	defer os.Remove(state + ".tmp")
	return m.migrate(ctx, state)
}

// migrate writes the memory to a file. The machine stands still meanwhile: what a running one changes is written again,
// and QEMU 7.2 with emulated processors seems to miss a page of it now and then (seen once: each machine
// that was started from it jumped to address 0, at the same microsecond).
func (m *Machine) migrate(ctx context.Context, state string) error {
	if err := m.Pause(ctx); err != nil {
		return err
	}
	if _, err := m.control.Run(ctx, "migrate-set-parameters", map[string]any{"max-bandwidth": int64(100e9)}); err != nil {
		return err
	}
	if _, err := m.control.Run(ctx, "migrate", map[string]any{"uri": "exec:cat >'" + state + ".tmp'"}); err != nil {
		return err
	}
	for {
		b, err := m.control.Run(ctx, "query-migrate", nil)
		if err != nil {
			return err
		}
		var status struct {
			Status string
			Desc   string `json:"error-desc"`
		}
		if err := json.Unmarshal(b, &status); err != nil {
			return err
		}
		switch status.Status {
		case "completed":
			return os.Rename(state+".tmp", state)
		case "failed", "cancelled":
			return fmt.Errorf("qemu could not save it: %s", status.Desc)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
