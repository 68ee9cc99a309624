package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drivebay/drivebay/internal/host"
)

// Reader reads attributes. An absent one reads as empty: drives, kernels and recordings
// differ in what they have. The reader records attributes without permission in denied.
type Reader struct {
	host.Files
	BlockDir string // sys/block, or sys/class/block in recordings without it
	// partitions is filled only where sys/class/block replaces sys/block.
	Partitions []string
	denied     []string
	entries    map[string]udevEntry // of the udev database, as far as read
	Lost       []string             // devices that are present and whose size cannot be read
	// RemovesUevents: a block device without a uevent file is being removed. In a recording the file may
	// be missing for any device.
	RemovesUevents bool
}

// Read returns the content of a file, and records why it could not be read.
func (s *Reader) Read(name string) ([]byte, bool) {
	b, err := s.ReadFile(name)
	s.note(name, err)
	return b, err == nil
}

func (s *Reader) note(name string, err error) {
	if errors.Is(err, fs.ErrPermission) {
		s.denied = append(s.denied, name)
	}
}

// Text returns an attribute as text for display: one line, trimmed, UTF-8.
func (s *Reader) Text(name string) string {
	b, _ := s.Read(name)
	return Clean(string(b))
}

// Number returns the number in a file.
func (s *Reader) Number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(s.Text(name), 10, 64)
	return n, err == nil
}

// Small returns a number that fits an int, 0 for anything else.
func (s *Reader) Small(name string) int {
	n, ok := s.Number(name)
	if !ok || n > 1<<30 {
		return 0
	}
	return int(n)
}

// Exists reports whether there is a file or a directory of a name.
func (s *Reader) Exists(name string) bool {
	_, err := s.Resolve(name)
	return err == nil
}

// Base returns the last name of a link's target. The text of the link has it without
// a walk through the tree; without a link, base resolves the path.
func (s *Reader) Base(name string) string {
	if text, err := s.Readlink(name); err == nil && path.Base(text) != ".." {
		return path.Base(text)
	}
	to, err := s.Resolve(name)
	if err != nil {
		return ""
	}
	return path.Base(to)
}

// List returns the names in a directory.
func (s *Reader) List(dir string) []string {
	names, err := s.ReadDir(dir)
	s.note(dir, err)
	return names
}

// SerialPage reads the unit serial number VPD page (SPC-5 7.7.19) from sysfs.
func (s *Reader) SerialPage(name string) string {
	b, _ := s.Read(name)
	if len(b) < 4 || b[1] != 0x80 {
		return ""
	}
	n := int(b[2])<<8 | int(b[3])
	return Clean(string(b[4:min(len(b), 4+n)]))
}

// Problems returns what could not be read.
func (s *Reader) Problems() []string {
	var out []string
	for _, name := range s.Lost {
		out = append(out, fmt.Sprintf("block device %s: size: read failed", name))
	}
	if len(s.denied) == 0 {
		return out
	}
	slices.Sort(s.denied)
	s.denied = slices.Compact(s.denied)
	return append(out, fmt.Sprintf("no permission to read %s (%d attributes in total): run as root to read them", s.denied[0], len(s.denied)))
}

// Clean makes text of a drive or the kernel fit for display.
func Clean(s string) string {
	if s = strings.TrimSpace(s); isPlain(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// isPlain reports whether a text is words of ASCII with one space between two of them: nearly every attribute is, and
// many are read each second.
func isPlain(s string) bool {
	inWord := false
	for i := range len(s) {
		switch c := s[i]; {
		case c > ' ' && c < 0x7f:
			inWord = true
		case c == ' ' && inWord:
			inWord = false
		default:
			return false
		}
	}
	return inWord || s == ""
}
