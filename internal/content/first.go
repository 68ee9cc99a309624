package content

import (
	"io"

	"github.com/drivebay/drivebay"
)

// firstAt is where the tools of all systems begin the first partition of a drive, and what they align its end to.
const firstAt = 1 << 20

// inFirst finds formats in a partition of the whole drive whose table was erased (sgdisk --zap-all). Many leave the first
// blocks of their partition as zeroes: md, bcache, btrfs, JFS and ZFS. It ends with the drive, or at the last whole MiB
// before the other copy of the table, which has 33 blocks: some formats keep their signature at its end.
func inFirst(r io.ReaderAt, size, block uint64) ([]drivebay.Signature, error) {
	table := 33 * max(block, 512)
	for _, end := range []uint64{size, (size - min(size, table)) / firstAt * firstAt} {
		if end <= firstAt {
			return nil, nil
		}
		if found, err := inRange(r, firstAt, end-firstAt); len(found) > 0 || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// inRange finds formats in a range that is in no partition table.
func inRange(r io.ReaderAt, start, size uint64) ([]drivebay.Signature, error) {
	v := look(r, start, size, partitionHead, partitionTail)
	defer v.done()
	found := signaturesOf(v, "")
	for _, s := range backups(v) {
		s.Offset += v.base
		found = append(found, s)
	}
	return found, v.err
}
