package fusedisk

import "encoding/binary"

// The parts of the kernel's FUSE protocol that one file in one folder needs
// (include/uapi/linux/fuse.h, version 7.31).
const (
	opLookup     = 1
	opForget     = 2
	opGetattr    = 3
	opSetattr    = 4
	opOpen       = 14
	opRead       = 15
	opWrite      = 16
	opStatfs     = 17
	opRelease    = 18
	opFsync      = 20
	opFlush      = 25
	opInit       = 26
	opOpendir    = 27
	opReaddir    = 28
	opReleasedir = 29
	opInterrupt  = 36
	opDestroy    = 38
	opForgets    = 42

	headIn, headOut = 40, 16
	maxWrite        = 128 << 10
	openDirect      = 1 // FOPEN_DIRECT_IO: the kernel passes on every read and write
	bigWrites       = 1 << 5
	validSeconds    = 3600

	rootNode, fileNode = 1, 2
)

var le = binary.LittleEndian

// request is one request of the kernel.
type request struct {
	op, node uint64
	unique   uint64
	body     []byte
}

func parse(b []byte) request {
	return request{uint64(le.Uint32(b[4:])), le.Uint64(b[16:]), le.Uint64(b[8:]), b[headIn:]}
}

// attr returns struct fuse_attr of the folder or of the file.
func (d *Disk) attr(node uint64) []byte {
	b := make([]byte, 88)
	mode, size := uint32(0o40700), uint64(0)
	if node == fileNode {
		mode, size = 0o100600, d.size
	}
	le.PutUint64(b, node)
	le.PutUint64(b[8:], size)
	le.PutUint64(b[16:], size/512)
	le.PutUint32(b[60:], mode)
	le.PutUint32(b[64:], 1)
	le.PutUint32(b[80:], 4096)
	return b
}

func (d *Disk) attrOut(node uint64) []byte {
	return append(words(validSeconds, 0), d.attr(node)...)
}

func (d *Disk) entryOut() []byte {
	return append(words(fileNode, 0, validSeconds, validSeconds, 0), d.attr(fileNode)...)
}

func words(w ...uint64) []byte {
	var b []byte
	for _, x := range w {
		b = le.AppendUint64(b, x)
	}
	return b
}

func initOut() []byte {
	b := make([]byte, 64)
	le.PutUint32(b, 7)
	le.PutUint32(b[4:], 31)
	le.PutUint32(b[8:], maxWrite)
	le.PutUint32(b[12:], bigWrites)
	le.PutUint16(b[16:], 64)
	le.PutUint16(b[18:], 48)
	le.PutUint32(b[20:], maxWrite)
	le.PutUint32(b[24:], 1)
	return b
}
