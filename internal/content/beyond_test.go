package content

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/drivebay/drivebay"
)

// gptHead is the head of a drive with a partition table: where its other header, the last
// block for partitions and the end of its one partition are.
func gptHead(other, last, end uint64) string {
	b := make([]byte, 34*512)
	copy(b[446:], "\x00\x00\x02\x00\xee\xff\xff\xff\x01\x00\x00\x00\xff\xff\xff\xff")
	copy(b[510:], "\x55\xaa")
	e := b[1024:]
	copy(e, uuidBytes+uuidBytes)
	binary.LittleEndian.PutUint64(e[32:], 2048)
	binary.LittleEndian.PutUint64(e[40:], end)
	copy(e[56:], "d\x00r\x00i\x00v\x00e\x00b\x00a\x00y\x00-\x00x\x00")
	h := b[512:1024]
	copy(h, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00")
	binary.LittleEndian.PutUint64(h[24:], 1)
	binary.LittleEndian.PutUint64(h[32:], other)
	binary.LittleEndian.PutUint64(h[40:], 34)
	binary.LittleEndian.PutUint64(h[48:], last)
	copy(h[56:], uuidBytes)
	binary.LittleEndian.PutUint64(h[72:], 2)
	binary.LittleEndian.PutUint32(h[80:], 128)
	binary.LittleEndian.PutUint32(h[84:], 128)
	binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(b[1024:]))
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:92]))
	return string(b)
}

// TestBeyond: a table whose other header, usable blocks or partitions lie beyond the end
// of the drive is that of a larger one; each alone says so.
func TestBeyond(t *testing.T) {
	const blocks = 8 * mib / 512
	for _, r := range []struct {
		name             string
		other, last, end uint64
		beyond           bool
	}{
		{"all within", blocks - 1, blocks - 34, 4095, false},
		{"of a smaller drive", blocks/2 - 1, blocks/2 - 34, 4095, false},
		{"the other header", blocks, blocks - 34, 4095, true},
		{"the last block for partitions", blocks - 1, blocks, 4095, true},
		{"a partition", blocks - 1, blocks - 34, blocks, true},
		{"everything", 1 << 40, 1<<40 - 33, 1<<40 - 34, true},
	} {
		c := drive(8*mib).put(0, gptHead(r.other, r.last, r.end)).detect(512)
		if (c.Beyond != "") != r.beyond || c.Kind == drivebay.ContentBlank {
			t.Errorf("%s: %v, %q", r.name, c.Kind, c.Beyond)
		}
	}
	damaged := drive(8*mib).put(0, gptHead(1<<40, 1<<40, 4095)).put(512+40, "\xff")
	if c := damaged.detect(512); c.Beyond != "" {
		t.Errorf("a header with a wrong sum says %q", c.Beyond)
	}
}
