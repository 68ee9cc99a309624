package mounts

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
)

// ProveFS refuses a device that does not have the filesystem that was made for the
// volume: its UUID was chosen before it was made, and no other has it. ProveFS formats
// nothing.
func ProveFS(disk host.Disk, v *drivebay.Volume) error {
	c := content.Detect(disk, disk.Size(), disk.BlockSize())
	for _, s := range c.Signatures {
		if s.Partition == "" && s.Format == v.FSType && (v.FSUUID == "" || strings.EqualFold(s.UUID, v.FSUUID)) {
			return nil
		}
	}
	if c.Reason != "" {
		return fmt.Errorf("the filesystem cannot be read: %s", c.Reason)
	}
	var found []string
	for _, s := range c.Signatures {
		found = append(found, strings.TrimSpace(s.Format+" "+s.UUID))
	}
	if len(found) == 0 {
		found = []string{"nothing"}
	}
	return fmt.Errorf("%w: %s is to have %s %s, and has %s", drivebay.ErrRefused, v.Location.Kind, v.FSType, v.FSUUID, strings.Join(found, ", "))
}

// fsSize returns the size of a filesystem by its superblock: ext4, the block
// count in two halves (Documentation/filesystems/ext4/super.rst); xfs, sb_dblocks
// (xfs_db(8), sb); btrfs, total_bytes of the superblock (btrfs wiki, on-disk
// format).
func fsSize(r io.ReaderAt, fs string) (uint64, error) {
	at, ok := map[string]int64{"ext4": 1024, "xfs": 0, "btrfs": 64 << 10}[fs]
	if !ok {
		return 0, fmt.Errorf("filesystem %q: %w", fs, drivebay.ErrNoSupport)
	}
	b := make([]byte, 1024)
	if _, err := r.ReadAt(b, at); err != nil {
		return 0, fmt.Errorf("superblock of %s: %w", fs, err)
	}
	little, big := binary.LittleEndian, binary.BigEndian
	switch fs {
	case "ext4":
		blocks := uint64(little.Uint32(b[4:]))
		if little.Uint32(b[0x60:])&0x80 != 0 { // INCOMPAT_64BIT
			blocks |= uint64(little.Uint32(b[0x150:])) << 32
		}
		return blocks << (10 + min(little.Uint32(b[0x18:]), 6)), nil
	case "xfs":
		return big.Uint64(b[8:]) * uint64(big.Uint32(b[4:])), nil
	}
	return little.Uint64(b[0x70:]), nil
}
