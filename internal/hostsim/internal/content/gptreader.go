package content

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	diskfs "github.com/diskfs/go-diskfs/partition/gpt"
)

// agrees reports whether go-diskfs reads the same entries from the table whose header is in a block.
// So the partitions of every test come from bytes that two implementations read alike. The caller has
// checked the checksums and bounded the number of entries: go-diskfs allocates what a header asks for.
func (c *Bytes) agrees(list []Entry, lba, size, block uint64) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	t, err := diskfs.Read(oneCopy{c, lba, size, block}, int(block), int(block))
	if err != nil || t.RecoveredFromBackup == (lba == 1) || len(t.Partitions) != len(list) {
		return false
	}
	for i, e := range list {
		p := t.Partitions[i]
		if p.Index != e.Number || p.Start != e.First || p.End != e.Last || p.Name != e.Name ||
			!strings.EqualFold(string(p.Type), GUID(e.Kind)) || !strings.EqualFold(p.GUID, GUID(e.ID)) {
			return false
		}
	}
	return true
}

// oneCopy is a drive for go-diskfs, on which only one copy of a table is to be seen.
type oneCopy struct {
	bytes            *Bytes
	lba, size, block uint64
}

func (o oneCopy) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || uint64(off) > o.size || uint64(len(p)) > o.size-uint64(off) {
		return 0, fmt.Errorf("%d bytes at %d: %w", len(p), off, io.ErrUnexpectedEOF)
	}
	if clear(p); o.lba == 1 || uint64(off) >= 2*o.block {
		o.bytes.Read(p, uint64(off))
	}
	return len(p), nil
}

func (o oneCopy) Seek(int64, int) (int64, error) { return int64(o.size), nil } // to the end, for the size
func (o oneCopy) Stat() (fs.FileInfo, error)     { return nil, errors.ErrUnsupported }
func (o oneCopy) Read([]byte) (int, error)       { return 0, errors.ErrUnsupported }
func (o oneCopy) Close() error                   { return nil }
