package mounts

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// A mount may be in no record: the store was lost, or the drive died before the volume
// was found again. Kubelet asks to unmount it all the same, and retries until that
// succeeds.

// LetGoAt calls do to unmount a volume, also one that is in no record.
func (e *Mounter) LetGoAt(ctx context.Context, op, id string, do func(context.Context, *MountState) error) error {
	err := e.Ledger.Work(ctx, id, func(ctx context.Context) error {
		r, err := e.Ledger.Record(id)
		if err != nil { // there is no record, or it is not restored yet
			r.Volume.ID = id
		}
		s, err := e.MountState(ctx, r.Volume)
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
func (e *Mounter) mountOf(id string, m host.Mount) bool {
	name, ok := e.deviceIn(m)
	if !ok {
		return false
	}
	name = e.MountTable.UnderDRBD(name) // a replicated volume
	dir := "sys/class/block/" + name
	num, err := e.Machine.ReadFile(dir + "/dev")
	if name == "" || err != nil {
		return true // the kernel has no such device
	}
	if title, err := e.MountTable.MapperName(dir); err == nil {
		lv, err := lvm.VolumeName(id)
		return title == device.PlainName(id) || err == nil && strings.HasSuffix(title, lvm.MapperName("", lv))
	}
	switch title := e.partitionTitle(dir, strings.TrimSpace(string(num))); title {
	case ledger.PartitionName(id), ledger.NewName(id):
		return true
	case "":
		return e.onOurDrive(name)
	}
	return false
}

// deviceIn returns the name of the device that a mount shows, "" if the kernel has none.
// It returns false for a mount that no volume can have.
func (e *Mounter) deviceIn(m host.Mount) (name string, ok bool) {
	if node := mounttable.Shows(m); node != "" {
		return node, true
	}
	if !slices.Contains(drivebay.FSTypes, m.FS) {
		return "", false
	}
	if m.FS == "btrfs" {
		return path.Base(m.Source), strings.HasPrefix(m.Source, "/dev/")
	}
	real, err := e.Machine.Resolve("sys/dev/block/" + m.DevNum)
	if err != nil {
		return "", true
	}
	return path.Base(real), true
}

// partitionTitle returns the name of a partition in the GPT; "" if it is not known.
func (e *Mounter) partitionTitle(dir, num string) string {
	if title, _ := partitions.LabelOf(e.Machine, dir, num); title != "" {
		return title
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for _, parts := range e.Partitions.Index.Parts {
		for _, p := range parts {
			if p.Num == num {
				return p.Title
			}
		}
	}
	return ""
}

// onOurDrive reports whether a partition is on a drive that is claimed, or that does not
// answer: then no partition on it can be named.
func (e *Mounter) onOurDrive(name string) bool {
	for _, d := range e.Drives.Snapshot().Drives {
		if _, err := e.Machine.ReadFile("sys/block/" + d.Name + "/" + name + "/partition"); err == nil {
			return d.Claim != nil || d.Status != drivebay.StatusOnline
		}
	}
	return false
}
