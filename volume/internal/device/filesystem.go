package device

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
)

// RefuseReplicated refuses a device at whose end the metadata of DRBD are, behind a filesystem of that type, or behind
// encrypted data if it has none: a write that DRBD does not see never reaches the peer, and a volume whose record is lost does
// not say that it is replicated. A DRBD device does not show the metadata below it. Bytes that look like them inside of a
// filesystem are data of its users. An end that cannot be read refuses nothing: most volumes have no metadata there.
func RefuseReplicated(disk host.Disk, fs string) error {
	b, size := make([]byte, drbd.SuperblockBytes), disk.Size()
	if size < drbd.MetadataBytes(size) {
		return nil
	}
	if _, err := disk.ReadMedium(b, int64(size-drbd.SuperblockBytes)); err != nil { // DRBD writes past the page cache
		return nil
	}
	if _, err := drbd.DecodeMetadata(b); err != nil {
		return nil
	}
	if n, err := FilesystemSize(disk, fs); err == nil && n > size-drbd.MetadataBytes(size) {
		return nil
	}
	return fmt.Errorf("%w: it has metadata of DRBD at its end, and its record does not say that it is replicated", drivebay.ErrRefused)
}

// FilesystemSize returns the size of a filesystem by its superblock: ext4, the block
// count in two halves (Documentation/filesystems/ext4/super.rst); xfs, sb_dblocks
// (xfs_db(8), sb); btrfs, total_bytes of the superblock (btrfs wiki, on-disk
// format).
func FilesystemSize(r io.ReaderAt, fs string) (uint64, error) {
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
