package partitions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Trusted refuses drives with the same content as another drive (drivebay.CopyOf), drives that
// shrank, drives that were removed and are back, and drives of unknown layout: nothing is written to them, and no LVM command may use
// them.
func (e *Catalog) Trusted(drives []string) error {
	s := e.Drives.Snapshot()
	for _, id := range drives {
		d, ok := steps.DriveOf(s, id)
		layout := e.LayoutOf(id)
		switch {
		case ok && d.SizeIssue != "": // before the layout, which it changes: a table that is restored for the smaller size is the wrong one
			return fmt.Errorf("drive %s (%s): %w: the drive shrank: %s; `drivebay explain %s` names the next step", id, d.Name, drivebay.ErrRefused, d.SizeIssue, id)
		case ok && layout != "":
			return fmt.Errorf("drive %s (%s): %w: the layout of the drive is unknown: %s; %s", id, d.Name, drivebay.ErrRefused, layout, restoreLayout)
		case ok && d.Usage == drivebay.UsageRemoved && d.Status == drivebay.StatusOnline:
			return fmt.Errorf("drive %s (%s): %w: it was removed and is back: pull it, or use it again with `drivebay accept %s`", id, d.Name, drivebay.ErrRefused, id)
		case ok && d.Copy != "":
			return fmt.Errorf("drive %s (%s): %w: %s; find out which is which, then run `wipefs --all` on the copy, or pull and forget it", id, d.Name, drivebay.ErrRefused, d.Copy)
		}
	}
	return nil
}

// UnreadOriginal returns the drive that the partition table of a drive was made for, if that is here and was not read yet.
func UnreadOriginal(s *drivebay.Snapshot, d *drivebay.Drive) string {
	if madeFor(d, d.ID) {
		return ""
	}
	i := slices.IndexFunc(s.Drives, func(o drivebay.Drive) bool {
		return o.Status == drivebay.StatusOnline && o.Content.Kind == drivebay.ContentUnknown && madeFor(d, o.ID)
	})
	if i < 0 {
		return ""
	}
	return s.Drives[i].ID
}

// madeFor reports whether the partition table of a drive was made for the drive with an id.
func madeFor(d *drivebay.Drive, id string) bool {
	return slices.ContainsFunc(d.Content.Signatures, func(s drivebay.Signature) bool {
		return s.Format == "gpt" && s.Partition == "" && strings.EqualFold(s.UUID, TableGUID(id))
	})
}

// ForeignCopy reports whether a drive has the same content as another one, and the partition
// table was made for the other one. LVM is not shown this drive: what is in use on the other
// one is still reported.
func ForeignCopy(d *drivebay.Drive) bool { return d.Copy != "" && !madeFor(d, d.ID) }

// Stuck reports whether a command to a drive has not returned.
func Stuck(d drivebay.Drive) bool { return d.Kernel != nil && d.Kernel.LaneStuck > 0 }

// StartTime is how long the first set waits for drives that do not answer.
const StartTime = 3 * time.Second

// ListTime is how long one drive may hold up the listing of the others.
const ListTime = 5 * time.Second

// AwayError is the error for an object that cannot be reached now, because its drive is
// not here or was not read. It matches ErrNotFound too: there is nothing to open.
type AwayError string

func (err AwayError) Error() string { return drivebay.ErrUnavailable.Error() + ": " + string(err) }

func (err AwayError) Is(target error) bool {
	return target == drivebay.ErrUnavailable || target == drivebay.ErrNotFound
}

// Away returns an AwayError.
func Away(format string, args ...any) error { return AwayError(fmt.Sprintf(format, args...)) }

// NeverRead is the reason for an unread drive that has no known fault.
const NeverRead = "it is not read yet"

// NotReadYet returns why the content of a drive is not known.
func NotReadYet(d *drivebay.Drive) string {
	switch {
	case Stuck(*d):
		return "it does not answer"
	case d.Content.Reason != "" && d.Content.Reason != drivebay.NotRead:
		return "it cannot be read: " + d.Content.Reason
	case d.Kernel != nil && d.Kernel.OpenError != "":
		return "it cannot be read: " + d.Kernel.OpenError
	}
	return NeverRead
}
