package tracking

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// ProveIdentity verifies that the block device of a number is the drive of an id, or a partition
// of it: the kernel now reports for that device what was listed under the id. The result
// remains valid while the caller has the device open, because the kernel does not reuse the number
// until then. ProveIdentity sends no request to a drive.
func (m *Tracker) ProveIdentity(ctx context.Context, id, devnum string) error {
	d, ok := m.State.Snapshot().Find(id)
	if !ok || d.ID != id {
		return fmt.Errorf("drive %s: %w", id, drivebay.ErrNotFound)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drive %s: %w", id, err)
	}
	s := &sysfs.Reader{Files: m.State.Machine, BlockDir: "sys/block"}
	dir, err := s.Resolve("sys/dev/block/" + devnum) // drivers/base/core.c, device_create_sys_dev_entry
	if err != nil {
		return fmt.Errorf("drive %s: %w: device %s cannot be identified: %w", id, drivebay.ErrRefused, devnum, err)
	}
	if s.Exists(dir + "/partition") {
		dir = path.Dir(dir)
	}
	is, ok := inventory.ReadDrive(s, path.Base(dir))
	if !ok {
		return fmt.Errorf("drive %s: %w: the identity of device %s cannot be read", id, drivebay.ErrRefused, devnum)
	}
	why := identityMismatch(d, &is)
	if why == "" && !slices.Contains(d.Disks, is.Disks[0]) {
		why = "the kernel has created the device again since the drives were listed"
	}
	if why != "" {
		return fmt.Errorf("drive %s (%s): %w: device %s is another drive: %s", id, d.Name, drivebay.ErrRefused, devnum, why)
	}
	return nil
}

// identityMismatch returns why two listings are not of one drive, "" when they are. One of them
// may know more than the other, but a serial or a worldwide name has to agree.
func identityMismatch(d, is *drivebay.Drive) string {
	proof := false
	for _, f := range []struct{ what, a, b string }{{"world-wide name", d.WWN, is.WWN}, {"serial", d.Serial, is.Serial}} {
		switch {
		case f.a != "" && f.b != "" && f.a != f.b:
			return fmt.Sprintf("its %s is %q, expected %q", f.what, f.b, f.a)
		case f.a != "" && f.a == f.b:
			proof = true
		}
	}
	switch {
	case d.IdentityIssue != "" && !hasOwnID(d):
		return "it cannot be distinguished from others: " + d.IdentityIssue
	case d.Copy != "":
		return d.Copy
	case d.SizeIssue != "":
		return d.SizeIssue
	case !proof:
		return "it has neither a world-wide name nor a serial"
	case d.Size != is.Size:
		return fmt.Sprintf("it has %d bytes, expected %d", is.Size, d.Size)
	}
	return ""
}

// hasOwnID reports whether a drive with duplicates has the id of its own names: the
// duplicates have other ids.
func hasOwnID(d *drivebay.Drive) bool {
	id, issue := identity.Base(d)
	return d.ID == id && issue == "" && d.Status == drivebay.StatusOnline
}

// Note adds an event of another part of the daemon, such as one about a volume.
func (m *Tracker) Note(e drivebay.Event) { m.State.Keeper.Add(e) }
