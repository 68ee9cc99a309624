package content

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Super is a filesystem on a medium: its superblock, and a private note with the rest, so that
// everything is copied with the bytes.
type Super struct {
	Kind  string // ext4, xfs, btrfs
	UUID  [16]byte
	Label string
	Size  uint64
	note
}

// note holds what a real filesystem keeps in many places.
type note struct {
	Used     uint64                    `json:"used,omitempty"`
	Errors   uint64                    `json:"errors,omitempty"`
	Warnings uint64                    `json:"warnings,omitempty"`
	First    int64                     `json:"first,omitempty"` // time of the first error
	Last     int64                     `json:"last,omitempty"`
	Damaged  bool                      `json:"damaged,omitempty"`
	Spots    map[string]host.PlaceKind `json:"spots,omitempty"` // files and folders
}

// The note is behind everything that readers of superblocks read.
const (
	noteAt   = 128 << 10
	noteRoom = 64 << 10
)

type formatRow struct {
	kind  string
	at    uint64
	write func(*Super) []byte
	read  func([]byte, *Super) bool
}

// filesystems lists the kinds that mkfs makes, and where their superblocks are.
var filesystems = []formatRow{
	{"ext4", 1024, writeExt4, readExt4},
	{"xfs", 0, writeXFS, readXFS},
	{"btrfs", 0x10000, writeBtrfs, readBtrfs},
}

// superLength is longer than any superblock.
const superLength = 4096

// ReadSuper returns the filesystem that the bytes hold.
func ReadSuper(read func([]byte, uint64)) (Super, bool) {
	b := make([]byte, superLength)
	for _, f := range filesystems {
		clear(b) // a device with a lost part leaves bytes as they are
		read(b, f.at)
		if s := (Super{Kind: f.kind}); f.read(b, &s) {
			s.note = readNote(read)
			return s, true
		}
	}
	return Super{}, false
}

func readNote(read func([]byte, uint64)) note {
	var n note
	length := make([]byte, 4)
	read(length, noteAt)
	if long := le.Uint32(length); long > 0 && long <= noteRoom-4 {
		b := make([]byte, long)
		read(b, noteAt+4)
		if json.Unmarshal(b, &n) != nil { // overwritten
			return note{Damaged: true}
		}
	}
	return n
}

// Store writes the superblock and the note.
func (s *Super) Store(write func([]byte, uint64) error) error {
	i := slices.IndexFunc(filesystems, func(f formatRow) bool { return f.kind == s.Kind })
	f := filesystems[i]
	text, err := json.Marshal(s.note)
	if err != nil {
		return err
	}
	if len(text) > noteRoom-4 {
		return fmt.Errorf("%w: too many files for a simulated filesystem", kernel.ErrNoSpace)
	}
	b := le.AppendUint32(nil, uint32(len(text)))
	if err := write(f.write(s), f.at); err != nil {
		return err
	}
	return write(append(b, text...), noteAt)
}

// Overhead returns the space of inode tables and journals.
func (s *Super) Overhead() uint64 { return s.Size/64 + 1<<20 }

// Usage returns the numbers of statfs(2).
func (s *Super) Usage() host.FSUsage {
	u := host.FSUsage{Bytes: s.Size - min(s.Size, s.Overhead())}
	u.Free = u.Bytes - min(u.Bytes, s.Used+u.Bytes/50)
	u.Available = u.Free
	switch s.Kind {
	case "ext4": // an inode per 16 KiB, a twentieth reserved for root (mke2fs.conf)
		u.Available -= min(u.Free, u.Bytes/20)
		u.Inodes = s.Size / 16384
		u.FreeInodes = u.Inodes - min(u.Inodes, 11+uint64(len(s.Spots)))
	case "xfs": // a quarter of the space may become inodes (mkfs.xfs, imaxpct)
		u.Inodes = s.Size / 4 / 512
		u.FreeInodes = u.Inodes - min(u.Inodes, 3+uint64(len(s.Spots)))
	}
	return u
}

func UUIDText(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func ParseUUID(s string) (id [16]byte, ok bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != 16 || len(s) != 36 || s != UUIDText([16]byte(b)) && strings.ToLower(s) != UUIDText([16]byte(b)) {
		return id, false
	}
	return [16]byte(b), true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc32c(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func cString(b []byte) string {
	text, _, _ := strings.Cut(string(b), "\x00")
	return text
}
