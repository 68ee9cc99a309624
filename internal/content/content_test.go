package content

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

// image is a drive in memory, some of whose bytes cannot be read.
type image struct {
	data        []byte
	bad, badEnd int64
}

var errMedium = errors.New("medium error")

func (m *image) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(b, m.data[off:])
	if end := off + int64(n); m.badEnd > m.bad && off < m.badEnd && end > m.bad {
		return int(max(0, m.bad-off)), errMedium
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func drive(size int) *image { return &image{data: make([]byte, size)} }

func (m *image) put(off int, s string) *image {
	if off < 0 {
		off += len(m.data)
	}
	copy(m.data[off:], s)
	return m
}

func (m *image) unreadable(from, to int64) *image {
	m.bad, m.badEnd = from, to
	return m
}

func (m *image) detect(blockSize int) drivebay.Content {
	return Detect(m, uint64(len(m.data)), blockSize)
}

const mib = 1 << 20

func formats(c drivebay.Content) string {
	var out []string
	for _, s := range c.Signatures {
		name := s.Format
		if s.Partition != "" {
			name = s.Partition + ":" + name
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestDetect(t *testing.T) {
	full := func(size int, b byte) *image { return &image{data: bytes.Repeat([]byte{b}, size)} }
	type row struct {
		name    string
		image   *image
		kind    drivebay.ContentKind
		formats string
	}
	rows := []row{
		{"zeros", drive(8 * mib), drivebay.ContentBlank, ""},
		{"ones", full(8*mib, 0xff), drivebay.ContentBlank, ""},
		{"twos", full(8*mib, 0x02), drivebay.ContentForeign, "unrecognised data"},
		{"zeros, then ones", full(8*mib, 0xff).put(0, string(make([]byte, 4*mib))), drivebay.ContentForeign, "unrecognised data"},
		{"a stray byte at the front", drive(8*mib).put(700001, "x"), drivebay.ContentForeign, "unrecognised data"},
		{"a stray byte at the end", drive(8*mib).put(-1, "x"), drivebay.ContentForeign, "unrecognised data"},
		{"the head cannot be read", drive(8*mib).unreadable(4096, 8192), drivebay.ContentUnknown, ""},
		{"the tail cannot be read", drive(8*mib).unreadable(8*mib-512, 8*mib), drivebay.ContentUnknown, ""},
		{"ones that end in a read error", full(8*mib, 0xff).unreadable(8*mib-512, 8*mib), drivebay.ContentUnknown, ""},
		{"a mark before what cannot be read", drive(8*mib).put(0, "XFSB").unreadable(4096, 8192), drivebay.ContentForeign, "xfs"},
		{"a mark, and no tail", drive(8*mib).put(0, "XFSB").unreadable(8*mib-512, 8*mib), drivebay.ContentForeign, "xfs"},
		{"stray bytes before what cannot be read", drive(8*mib).put(0, "hello").unreadable(4096, 8192), drivebay.ContentUnknown, ""},
		{"4 KiB", drive(4096), drivebay.ContentBlank, ""},
		{"512 B", drive(512), drivebay.ContentBlank, ""},
		{"1 byte", drive(1), drivebay.ContentBlank, ""},
		{"1 byte with something in it", drive(1).put(0, "x"), drivebay.ContentForeign, "unrecognised data"},
		{"2 MiB in which the ends overlap", drive(2*mib).put(mib, "x"), drivebay.ContentForeign, "unrecognised data"},
		{"ext without inodes is no ext", drive(8*mib).put(0x438, "\x53\xef"), drivebay.ContentForeign, "unrecognised data"},
		{"a boot sector that is no table", drive(8*mib).put(510, "\x55\xaa").put(446, "code"), drivebay.ContentForeign, "unrecognised data"},
	}
	for _, r := range rows {
		c := r.image.detect(512)
		if c.Kind != r.kind || formats(c) != r.formats {
			t.Errorf("%s: %v %q, want %v %q", r.name, c.Kind, formats(c), r.kind, r.formats)
		}
		if c.Kind == drivebay.ContentUnknown && c.Reason == "" || c.Kind == drivebay.ContentBlank && c.Reason != "" {
			t.Errorf("%s: %v with reason %q", r.name, c.Kind, c.Reason)
		}
	}
	if c := Detect(drive(4096), 8192, 512); c.Kind != drivebay.ContentUnknown || c.Reason == "" {
		t.Errorf("a drive shorter than it says: %v %q", c.Kind, c.Reason)
	}
	if c := Detect(drive(0), 0, 512); c.Kind != drivebay.ContentUnknown || c.Reason == "" {
		t.Errorf("a drive of no size: %v %q", c.Kind, c.Reason)
	}
}

// markImage is a drive with one mark on it, and what it is not believed without.
func markImage(m mark) *image {
	img := drive(4 * mib)
	switch m.format {
	case "ext2":
		img.put(0x400, "\x01")
	case "ext3":
		img.put(0x400, "\x01").put(0x45c, "\x04")
	case "ext4":
		img.put(0x400, "\x01").put(0x460, "\x40")
	case "jbd":
		img.put(0x460, "\x08")
	case "minix":
		img.put(0x400, "\x01\x00\x00\x00\x01\x00\x01\x00\x01")
	case "squashfs":
		img.put(28, "\x04") // the version; others have other names with blkid
	case "sun":
		img.put(0, "\xda\xbe")
	case "LVM2_member":
		img.put(int(m.at)-24, "LABELONE")
	}
	return img.put(int(m.at), m.magic)
}

// TestMarks writes each mark alone, as its table row says, and wants it found.
// What the rows say is held against real tools in tools_test.go where there are any.
func TestMarks(t *testing.T) {
	for _, m := range marks {
		c := markImage(m).detect(512)
		if c.Kind != drivebay.ContentForeign || formats(c) != m.format {
			t.Errorf("%s at %#x: %v %q", m.format, m.at, c.Kind, formats(c))
			continue
		}
		at := m.at
		if at < 0 {
			at += 4 * mib
		}
		if c.Signatures[0].Offset != uint64(at) {
			t.Errorf("%s: found at %d, is at %d", m.format, c.Signatures[0].Offset, at)
		}
	}
}

// le writes integers in little-endian order.
func le(values ...any) string {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.String()
}

const uuidBytes = "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"
const uuidText = "01234567-89ab-cdef-0123-456789abcdef"

// lvmLabelSector is sector 1 of a physical volume: label_header and pv_header of
// lvm2's lib/format_text/layout.h.
func lvmLabelSector() string {
	return "LABELONE" + le(uint64(1), uint32(0), uint32(32)) + "LVM2 001" + "abcdefghijklmnopqrstuvwxyz012345"
}

// mdSuperblock is the head of struct mdp_superblock_1 of include/uapi/linux/raid/md_p.h.
func mdSuperblock() string {
	return le(uint32(0xa92b4efc), uint32(1), uint32(0), uint32(0)) + uuidBytes + "host:data"
}

// mdOldSuperblock is the head of mdp_super_t: the id is four words in the byte
// order of the machine, not side by side.
func mdOldSuperblock() string {
	return le(uint32(0xa92b4efc), uint32(0), uint32(90), [2]uint32{}, uint32(0x01234567), [7]uint32{}, uint32(0x89abcdef), uint32(0x01234567), uint32(0x89abcdef))
}

func TestFieldsOfMarks(t *testing.T) {
	rows := []struct {
		name  string
		image *image
		want  drivebay.Signature
	}{
		{"LVM", drive(4*mib).put(512, lvmLabelSector()), drivebay.Signature{Format: "LVM2_member", Offset: 512 + 24, UUID: "abcdef-ghij-klmn-opqr-stuv-wxyz-012345"}},
		{"md 1.1", drive(4*mib).put(0, mdSuperblock()), drivebay.Signature{Format: "linux_raid_member", Label: "host:data", UUID: uuidText}},
		{"md 1.2", drive(4*mib).put(4096, mdSuperblock()), drivebay.Signature{Format: "linux_raid_member", Offset: 4096, Label: "host:data", UUID: uuidText}},
		{"md 1.0", drive(4*mib).put(-8192, mdSuperblock()), drivebay.Signature{Format: "linux_raid_member", Offset: 4*mib - 8192, Label: "host:data", UUID: uuidText}},
		{"md 1.0, odd size", drive(4*mib+512*3).put(4*mib-8192, mdSuperblock()), drivebay.Signature{Format: "linux_raid_member", Offset: 4*mib - 8192, Label: "host:data", UUID: uuidText}},
		{"md 0.90", drive(4*mib).put(-65536, mdOldSuperblock()), drivebay.Signature{Format: "linux_raid_member", Offset: 4*mib - 65536, UUID: uuidText}},
		{"md 0.90, odd size", drive(4*mib+5000).put(4*mib-65536, mdOldSuperblock()), drivebay.Signature{Format: "linux_raid_member", Offset: 4*mib - 65536, UUID: uuidText}},
		{"LUKS1", drive(4*mib).put(0, "LUKS\xba\xbe\x00\x01").put(8, "aes").put(40, "xts-plain64").put(168, uuidText), drivebay.Signature{Format: "crypto_LUKS", UUID: uuidText}},
		{"LUKS2", drive(4*mib).put(0, "LUKS\xba\xbe\x00\x02").put(24, "backup").put(168, uuidText), drivebay.Signature{Format: "crypto_LUKS", Label: "backup", UUID: uuidText}},
		{"LUKS2, the first header lost", drive(4*mib).put(0x4000, "SKUL\xba\xbe\x00\x02").put(0x4000+168, uuidText), drivebay.Signature{Format: "crypto_LUKS", Offset: 0x4000, UUID: uuidText}},
		{"zfs", drive(4*mib).put(132<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"), drivebay.Signature{Format: "zfs_member", Offset: 132 << 10}},
		{"zfs of another byte order, last label, odd size", drive(4*mib+8704).put(4*mib-128<<10, "\x00\x00\x00\x00\x00\xba\xb1\x0c"), drivebay.Signature{Format: "zfs_member", Offset: 4*mib - 128<<10}},
		{"label no terminal should see", drive(4*mib).put(0, "XFSB").put(108, "\x1b[2J\xffx"), drivebay.Signature{Format: "xfs", Label: "[2J\uFFFDx"}},
	}
	for _, r := range rows {
		c := r.image.detect(512)
		if len(c.Signatures) != 1 || c.Signatures[0] != r.want {
			t.Errorf("%s: %+v, want %+v", r.name, c.Signatures, r.want)
		}
	}
}

// part is a partition of a table that a test writes.
type part struct {
	name        string
	first, last uint64
}

// gptHalf writes one copy of a GPT: the header in block at, the entries at lba.
func gptHalf(m *image, bs int, at, entriesAt uint64, entrySize, count uint32, parts []part) {
	entries := make([]byte, int(entrySize)*int(count))
	for i, p := range parts {
		e := entries[i*int(entrySize):]
		copy(e, "\xaf\x3d\xc6\x0f\x83\x84\x72\x47\x8e\x79\x3d\x69\xd8\x47\x7d\xe4")
		copy(e[16:], uuidBytes)
		copy(e[32:], le(p.first, p.last, uint64(0), utf16.Encode([]rune(p.name))))
	}
	h := []byte("EFI PART" + le(uint32(0x10000), uint32(92), uint32(0), uint32(0), at, uint64(1), uint64(34), uint64(100)) +
		"\x67\x45\x23\x01\xab\x89\xef\xcd\x01\x23\x45\x67\x89\xab\xcd\xef" +
		le(entriesAt, count, entrySize, crc32.ChecksumIEEE(entries)))
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h))
	m.put(int(at)*bs, string(h)).put(int(entriesAt)*bs, string(entries))
}

// gptDrive is a drive of 8 MiB with both copies of a GPT and a protective MBR.
func gptDrive(bs int, parts ...part) *image {
	m := drive(8 * mib)
	m.put(446, "\x00\x00\x02\x00\xee\xff\xff\xff"+le(uint32(1), uint32(8*mib/bs-1))).put(510, "\x55\xaa")
	last := uint64(8*mib/bs - 1)
	gptHalf(m, bs, 1, 2, 128, 128, parts)
	gptHalf(m, bs, last, last-uint64(128*128/bs), 128, 128, parts)
	return m
}

func TestTables(t *testing.T) {
	ours, theirs := part{"drivebay-7f", 2048, 4095}, part{"Linux", 4096, 8191}
	wipe := func(m *image, from, to int) *image { return m.put(from, string(make([]byte, to-from))) }
	nonsense := func(entrySize, count uint32) *image {
		m := wipe(gptDrive(512), 512, 8*mib)
		gptHalf(m, 512, 1, 2, 128, 1, nil)
		copy(m.data[512+80:], le(count, entrySize))
		return m
	}
	dosParts := func(m *image) *image {
		return m.put(446, "\x80\x00\x00\x00\x83\x00\x00\x00"+le(uint32(2048), uint32(2048))).put(510, "\x55\xaa")
	}
	rows := []struct {
		name      string
		image     *image
		blockSize int
		kind      drivebay.ContentKind
		formats   string
	}{
		{"ours", gptDrive(512, ours, part{"drivebay-8", 4096, 8191}), 512, drivebay.ContentOurs, "gpt"},
		{"ours, with their data in it", gptDrive(512, ours).put(2048*512, "XFSB"), 512, drivebay.ContentOurs, "gpt 1:xfs"},
		{"ours, block size not known", gptDrive(512, ours), 0, drivebay.ContentOurs, "gpt"},
		{"ours, 4096", gptDrive(4096, part{"drivebay-7f", 256, 511}), 4096, drivebay.ContentOurs, "gpt"},
		{"ours, 4096 not known", gptDrive(4096, part{"drivebay-7f", 256, 511}).put(256*4096, "XFSB"), 0, drivebay.ContentOurs, "gpt 1:xfs"},
		// A vdev that fills the last partition has a label where one on the whole drive would be.
		{"ours, with zfs to the end", gptDrive(512, part{"drivebay-7f", 2048, 8*2048 - 65}).put(8*mib-384<<10+1024, "\x0c\xb1\xba\x00\x00\x00\x00\x00"), 512, drivebay.ContentOurs, "gpt"},
		{"mixed", gptDrive(512, ours, theirs), 512, drivebay.ContentForeign, "gpt"},
		{"theirs", gptDrive(512, theirs).put(4096*512, "XFSB").put(4096*512+108, "data"), 512, drivebay.ContentForeign, "gpt 1:xfs"},
		{"a nameless one", gptDrive(512, part{"", 2048, 4095}), 512, drivebay.ContentForeign, "gpt"},
		{"no partition", gptDrive(512), 512, drivebay.ContentForeign, "gpt"},
		{"ours, outside of the drive", gptDrive(512, part{"drivebay-7f", 2048, 1 << 40}), 512, drivebay.ContentForeign, "gpt"},
		{"ours, with a filesystem before it", gptDrive(512, ours).put(0x10040, "_BHRfS_M"), 512, drivebay.ContentForeign, "gpt btrfs"},
		{"ours, changed after its checksum", gptDrive(512, ours, theirs).put(1024+128+56, le(utf16.Encode([]rune("drivebay-x")))), 512, drivebay.ContentForeign, "gpt"},
		{"ours, another header", gptDrive(512, ours).put(512+40, "\x23"), 512, drivebay.ContentForeign, "gpt"},
		{"ours, partitioned anew by a tool that knows MBR only", dosParts(gptDrive(512, ours)), 512, drivebay.ContentForeign, "gpt"},
		{"ours, without its MBR", wipe(gptDrive(512, ours), 0, 512), 512, drivebay.ContentForeign, "gpt"},
		{"ours, backup only", wipe(gptDrive(512, ours), 0, 1*mib), 512, drivebay.ContentForeign, "gpt"},
		{"backup only, 4096", wipe(gptDrive(4096, part{"a", 256, 511}).put(256*4096, "XFSB"), 0, 64<<10), 4096, drivebay.ContentForeign, "gpt 1:xfs"},
		{"ours, and what is in it cannot be read", gptDrive(512, ours).unreadable(2400*512, 2401*512), 512, drivebay.ContentOurs, "gpt"},
		{"ours, unreadable where a mark of the drive could be", gptDrive(512, ours).unreadable(2055*512, 2056*512), 512, drivebay.ContentForeign, "gpt"},
		{"entries of no size", nonsense(0, 128), 512, drivebay.ContentForeign, "gpt"},
		{"entries of 64 bytes", nonsense(64, 128), 512, drivebay.ContentForeign, "gpt"},
		{"entries of 4 GiB", nonsense(1<<32-1, 1<<32-1), 512, drivebay.ContentForeign, "gpt"},
		{"4 billion entries", nonsense(128, 1<<32-1), 512, drivebay.ContentForeign, "gpt"},
		{"dos", dosParts(drive(8*mib)).put(2048*512, "XFSB"), 512, drivebay.ContentForeign, "dos 1:xfs"},
		{"dos, 4096", drive(8*mib).put(446, "\x00\x00\x00\x00\x83\x00\x00\x00"+le(uint32(256), uint32(256))).put(510, "\x55\xaa").put(256*4096, "XFSB"), 4096, drivebay.ContentForeign, "dos 1:xfs"},
	}
	for _, r := range rows {
		c := r.image.detect(r.blockSize)
		if c.Kind != r.kind || formats(c) != r.formats {
			t.Errorf("%s: %v %q (%s), want %v %q", r.name, c.Kind, formats(c), c.Reason, r.kind, r.formats)
		}
		if r.formats == "gpt" && c.Signatures[0].UUID != uuidText {
			t.Errorf("%s: disk GUID %q", r.name, c.Signatures[0].UUID)
		}
	}
	c := gptDrive(512, theirs).put(4096*512, "XFSB").detect(512)
	if s := c.Signatures[1]; s.Offset != 4096*512 || s.Partition != "1" {
		t.Errorf("the mark in a partition is at %d of partition %q", s.Offset, s.Partition)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte{}, []byte{}, uint32(0), 0)
	f.Add([]byte("XFSB"), []byte("tail"), uint32(4096), 512)
	f.Add(gptDrive(512, part{"drivebay-1", 40, 80}).data[:8192], gptDrive(512, part{"a", 40, 80}).data[8*mib-8192:], uint32(1<<16), 512)
	f.Add(gptDrive(4096, part{"drivebay-1", 40, 80}).data[:32<<10], []byte{}, uint32(1<<18), 4096)
	f.Add([]byte(mdSuperblock()), []byte(lvmLabelSector()), uint32(1100), 0)
	f.Fuzz(func(t *testing.T, head, tail []byte, gap uint32, blockSize int) {
		m := &image{data: append(append(bytes.Clone(head), make([]byte, gap%(3*mib))...), tail...)}
		c := m.detect(blockSize)
		for _, s := range c.Signatures {
			for _, text := range []string{s.Format, s.Label, s.UUID, s.Partition} {
				if !utf8.ValidString(text) {
					t.Fatalf("%q is no UTF-8", text)
				}
			}
			if s.Offset >= uint64(len(m.data)) {
				t.Fatalf("%s at %d of %d", s.Format, s.Offset, len(m.data))
			}
		}
		if c.Kind == drivebay.ContentBlank {
			n := min(len(m.data), driveEnd)
			ends := append(bytes.Clone(m.data[:n]), m.data[len(m.data)-n:]...)
			if bytes.Count(ends, []byte{0}) != len(ends) && bytes.Count(ends, []byte{0xff}) != len(ends) {
				t.Fatal("called blank, is not")
			}
		}
	})
}
