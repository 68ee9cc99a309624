package emul

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// A store keeps the data of a disk. What was never written reads as zeros.
type store interface {
	io.ReaderAt
	io.WriterAt
	discard(offset, length int64) error
}

// chunkSize is what a disk in memory grows by.
const chunkSize = 16 << 10

// memory is a sparse disk: chunks that hold only zeros are not kept.
type memory map[int64]*[chunkSize]byte

// pieces cuts a range at the borders of chunks.
func pieces(offset int64, length int, do func(chunk int64, within, from, to int)) {
	for at := 0; at < length; {
		chunk, within := (offset+int64(at))/chunkSize, int((offset+int64(at))%chunkSize)
		n := min(chunkSize-within, length-at)
		do(chunk, within, at, at+n)
		at += n
	}
}

func (m memory) ReadAt(p []byte, offset int64) (int, error) {
	pieces(offset, len(p), func(chunk int64, within, from, to int) {
		if c := m[chunk]; c != nil {
			copy(p[from:to], c[within:])
		} else {
			clear(p[from:to])
		}
	})
	return len(p), nil
}

func (m memory) WriteAt(p []byte, offset int64) (int, error) {
	pieces(offset, len(p), func(chunk int64, within, from, to int) {
		c := m[chunk]
		if c == nil {
			if zeros(p[from:to]) {
				return
			}
			c = new([chunkSize]byte)
			m[chunk] = c
		}
		copy(c[within:], p[from:to])
	})
	return len(p), nil
}

// discard may be asked for a whole disk of terabytes: it walks what there is.
func (m memory) discard(offset, length int64) error {
	end := offset + length
	for chunk, c := range m {
		start := chunk * chunkSize
		from, to := max(offset, start), min(end, start+chunkSize)
		switch {
		case from >= to:
		case to-from == chunkSize:
			delete(m, chunk)
		default:
			clear(c[from-start : to-start])
		}
	}
	return nil
}

func zeros(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// file is a disk in a sparse file.
type file struct{ *os.File }

// openFile makes the file as long as the disk, which a hole does for nothing.
func openFile(path string, size uint64) (store, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(size)); err != nil {
		f.Close()
		return nil, fmt.Errorf("make %s as long as the disk: %w", path, err)
	}
	return file{f}, nil
}

// discard punches a hole (fallocate(2)).
func (f file) discard(offset, length int64) error {
	const keepSize, punchHole = 0x1, 0x2
	return syscall.Fallocate(int(f.Fd()), keepSize|punchHole, offset, length)
}
