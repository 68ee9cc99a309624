package volume

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// A mount may be in no record: the store was lost, or the drive died before the volume
// was found again. Kubelet asks to unmount it all the same, and retries until that
// succeeds.

// letGoAt calls do to unmount a volume, also one that is in no record.
func (e *Engine) letGoAt(ctx context.Context, op, id string, do func(context.Context, *mountState) error) error {
	err := e.work(ctx, id, func(ctx context.Context) error {
		r, err := e.record(id)
		if err != nil { // there is no record, or it is not restored yet
			r.Volume.ID = id
		}
		s, err := e.mountState(ctx, r.Volume)
		if err != nil {
			return err
		}
		return do(ctx, s)
	})
	if err != nil {
		return fmt.Errorf("%s volume %s: %w", op, id, err)
	}
	return nil
}

// mountOf reports whether a mount shows the volume of an id although no record says so:
// its device has the volume's name, or is gone, or is a nameless partition of a drive
// that is claimed or does not answer. A device with another name is something else.
func (e *Engine) mountOf(id string, m host.Mount) bool {
	name, ok := e.deviceIn(m)
	if !ok {
		return false
	}
	dir := "sys/class/block/" + name
	num, err := e.machine.ReadFile(dir + "/dev")
	if name == "" || err != nil {
		return true // the kernel has no such device
	}
	if title, err := e.mapperName(dir); err == nil {
		lv, err := lvm.VolumeName(id)
		return title == plainName(id) || err == nil && strings.HasSuffix(title, lvm.MapperName("", lv))
	}
	switch title := e.partitionTitle(dir, strings.TrimSpace(string(num))); title {
	case partitionName(id), newName(id):
		return true
	case "":
		return e.onOurDrive(name)
	}
	return false
}

// deviceIn returns the name of the device that a mount shows, "" if the kernel has none.
// It returns false for a mount that no volume can have.
func (e *Engine) deviceIn(m host.Mount) (name string, ok bool) {
	if node := shows(m); node != "" {
		return node, true
	}
	if !slices.Contains(drivebay.FSTypes, m.FS) {
		return "", false
	}
	if m.FS == "btrfs" {
		return path.Base(m.Source), strings.HasPrefix(m.Source, "/dev/")
	}
	real, err := e.machine.Resolve("sys/dev/block/" + m.DevNum)
	if err != nil {
		return "", true
	}
	return path.Base(real), true
}

// partitionTitle returns the name of a partition in the GPT; "" if it is not known.
func (e *Engine) partitionTitle(dir, num string) string {
	if title, _ := labelOf(e.machine, dir, num); title != "" {
		return title
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, parts := range e.index.parts {
		for _, p := range parts {
			if p.num == num {
				return p.title
			}
		}
	}
	return ""
}

// onOurDrive reports whether a partition is on a drive that is claimed, or that does not
// answer: then no partition on it can be named.
func (e *Engine) onOurDrive(name string) bool {
	for _, d := range e.drives.Snapshot().Drives {
		if _, err := e.machine.ReadFile("sys/block/" + d.Name + "/" + name + "/partition"); err == nil {
			return d.Claim != nil || d.Status != drivebay.StatusOnline
		}
	}
	return false
}
