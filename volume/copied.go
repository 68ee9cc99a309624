package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// notCopied refuses drives whose content another drive has as well (drivebay.CopyOf):
// nothing is written to them, and no LVM command may choose between them.
func (e *Engine) notCopied(drives []string) error {
	s := e.drives.Snapshot()
	for _, id := range drives {
		if d, ok := driveOf(s, id); ok && d.Copy != "" {
			return fmt.Errorf("drive %s (%s): %w: %s; find out which is which, then pull the copy or run `wipefs --all` on it", id, d.Name, drivebay.ErrRefused, d.Copy)
		}
	}
	return nil
}

// foreignCopy says that of two drives with the same content this is not the one that
// the partition table was made for. LVM is not shown it: what is in use on the other
// one is still reported.
func foreignCopy(d *drivebay.Drive) bool {
	return d.Copy != "" && !slices.ContainsFunc(d.Content.Signatures, func(s drivebay.Signature) bool {
		return s.Format == "gpt" && s.Partition == "" && strings.EqualFold(s.UUID, tableGUID(d.ID))
	})
}
