package content

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/drivebay/drivebay"
)

// table is a partition table and what is in its partitions.
type table struct {
	signatures []drivebay.Signature
	names      []string // GPT names, one a partition
	err        error
}

// maxPartitions bounds how many partitions are looked into.
const maxPartitions = 128

type extent struct {
	number      int
	start, size uint64
	name        string
}

// readTable reads GPT or MBR and looks into each partition.
func readTable(r io.ReaderAt, v view, size uint64, blockSize int) table {
	var t table
	gpt, parts := readGPT(r, v, size, blockSize)
	switch {
	case gpt != nil:
		t.signatures = append(t.signatures, *gpt)
	case isMBR(v):
		t.signatures = append(t.signatures, drivebay.Signature{Format: "dos", Offset: 510})
		parts = readMBR(v, max(blockSize, 512))
	}
	for _, p := range parts {
		t.names = append(t.names, p.name)
		if p.size == 0 || p.start >= size || p.size > size-p.start {
			continue
		}
		inside, err := read(r, p.start, p.size)
		if err != nil {
			t.err = err
			continue
		}
		t.signatures = append(t.signatures, signaturesOf(inside, strconv.Itoa(p.number))...)
	}
	return t
}

// readGPT finds the header after the protective MBR or its backup in the last
// block (UEFI 2.10, 5.3.2), for the block size that is known, else for both usual ones.
func readGPT(r io.ReaderAt, v view, size uint64, blockSize int) (*drivebay.Signature, []extent) {
	sizes := []uint64{512, 4096}
	if blockSize > 0 {
		sizes = []uint64{uint64(blockSize), 512, 4096}
	}
	for _, bs := range sizes {
		for _, at := range []int64{int64(bs), -int64(bs)} {
			h := v.at(at, 92)
			if h == nil || string(h[:8]) != "EFI PART" {
				continue
			}
			off := uint64(at)
			if at < 0 {
				off = size - bs
			}
			return &drivebay.Signature{Format: "gpt", UUID: guid(h[56:72]), Offset: off}, gptEntries(r, h, bs, size)
		}
	}
	return nil, nil
}

func gptEntries(r io.ReaderAt, h []byte, bs, size uint64) []extent {
	lba, count, entry := binary.LittleEndian.Uint64(h[72:]), binary.LittleEndian.Uint32(h[80:]), binary.LittleEndian.Uint32(h[84:])
	if entry < 128 || entry > 4096 || lba > size/bs {
		return nil
	}
	buf := make([]byte, int(min(count, maxPartitions))*int(entry))
	if fill(r, buf, lba*bs) != nil {
		return nil
	}
	var out []extent
	for i := 0; i*int(entry) < len(buf); i++ {
		e := buf[i*int(entry):][:128]
		if binary.LittleEndian.Uint64(e) == 0 && binary.LittleEndian.Uint64(e[8:]) == 0 {
			continue
		}
		first, last := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
		p := extent{number: i + 1, name: utf16Text(e[56:128])}
		if first <= last && last < size/bs {
			p.start, p.size = first*bs, (last-first+1)*bs
		}
		out = append(out, p)
	}
	return out
}

// guid writes a GUID as people write it: the first three fields are little-endian.
func guid(b []byte) string {
	return uuid([]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]})
}

// isMBR believes 55AAh only beside four entries that make sense: boot sectors of
// filesystems end with it too.
func isMBR(v view) bool {
	b := v.at(0, 512)
	if b == nil || b[510] != 0x55 || b[511] != 0xaa {
		return false
	}
	used := false
	for i := range 4 {
		e := b[446+16*i:][:16]
		if e[0]&0x7f != 0 {
			return false
		}
		used = used || (e[4] != 0 && binary.LittleEndian.Uint32(e[12:]) != 0)
	}
	return used
}

func readMBR(v view, bs int) []extent {
	var out []extent
	for i := range 4 {
		e := v.at(446+16*int64(i), 16)
		start, count := binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
		if e[4] != 0 && count != 0 {
			out = append(out, extent{number: i + 1, start: uint64(start) * uint64(bs), size: uint64(count) * uint64(bs)})
		}
	}
	return out
}
