package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// trusted refuses drives with the same content as another drive (drivebay.CopyOf), drives that
// shrank, and drives of unknown layout: nothing is written to them, and no LVM command may use
// them.
func (e *Engine) trusted(drives []string) error {
	s := e.drives.Snapshot()
	for _, id := range drives {
		d, ok := driveOf(s, id)
		layout := e.layoutOf(id)
		switch {
		case ok && layout != "":
			return fmt.Errorf("drive %s (%s): %w: the layout of the drive is unknown: %s; %s", id, d.Name, drivebay.ErrRefused, layout, restoreLayout)
		case ok && d.SizeIssue != "":
			return fmt.Errorf("drive %s (%s): %w: the drive shrank: %s; `drivebay explain %s` names the next step", id, d.Name, drivebay.ErrRefused, d.SizeIssue, id)
		case ok && d.Copy != "":
			return fmt.Errorf("drive %s (%s): %w: %s; find out which is which, then pull the copy or run `wipefs --all` on it", id, d.Name, drivebay.ErrRefused, d.Copy)
		}
	}
	return nil
}

// shrank reports whether one of the drives has fewer bytes than it should.
func (e *Engine) shrank(drives []string) bool {
	s := e.drives.Snapshot()
	return slices.ContainsFunc(drives, func(id string) bool {
		d, ok := driveOf(s, id)
		return ok && d.SizeIssue != ""
	})
}

// untrusted reports whether one of the drives shrank, or has an unknown layout.
func (e *Engine) untrusted(drives []string) bool {
	return e.shrank(drives) || slices.ContainsFunc(drives, func(id string) bool { return e.layoutOf(id) != "" })
}

// foreignCopy reports whether a drive has the same content as another one, and the partition
// table was made for the other one. LVM is not shown this drive: what is in use on the other
// one is still reported.
func foreignCopy(d *drivebay.Drive) bool {
	return d.Copy != "" && !slices.ContainsFunc(d.Content.Signatures, func(s drivebay.Signature) bool {
		return s.Format == "gpt" && s.Partition == "" && strings.EqualFold(s.UUID, tableGUID(d.ID))
	})
}
