package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// parseMountinfo parses a mount table in the format of proc_pid_mountinfo(5). It skips lines that do
// not fit: half a table is better than none, and the kernel writes no such lines.
func parseMountinfo(text string) []Mount {
	var out []Mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 2 {
			continue
		}
		id, err := strconv.Atoi(f[0])
		if err != nil {
			continue
		}
		opts := f[5]
		if len(g) > 2 {
			opts += "," + g[2]
		}
		out = append(out, Mount{ID: id, DevNum: f[2], Root: Unescape(f[3]), Target: Unescape(f[4]), FS: g[0], Source: Unescape(g[1]), Opts: opts})
	}
	return out
}

// parseMounts parses the older table, proc_pid_mounts(5), which has no device numbers.
func parseMounts(text string) []Mount {
	var out []Mount
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 4 {
			out = append(out, Mount{Source: Unescape(f[0]), Target: Unescape(f[1]), FS: f[2], Opts: f[3], Root: "/"})
		}
	}
	return out
}

// Unescape decodes the octal escapes of blanks, tabs, newlines and backslashes in a path that the kernel lists.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// pid1Mounts is the mount table of pid 1, which has the machine's mount namespace.
const pid1Mounts = "proc/1/mountinfo"

// mountTable reads the mount table of a machine and caches it: a node has a thousand mounts, which
// rarely change within a second.
type mountTable struct {
	mu    sync.Mutex
	name  string
	text  string // all is made of it
	all   []Mount
	spare []byte // buffer for the next read
}

// of returns the mount table of pid 1, else that of our process.
func (t *mountTable) of(files interface {
	readInto(name string, b []byte) ([]byte, error)
}) ([]Mount, error) {
	t.mu.Lock()
	buf := t.spare
	t.spare = nil
	t.mu.Unlock()
	var first error
	for _, try := range []struct {
		name  string
		parse func(string) []Mount
	}{{pid1Mounts, parseMountinfo}, {"proc/self/mountinfo", parseMountinfo}, {"proc/self/mounts", parseMounts}, {"proc/mounts", parseMounts}} {
		b, err := files.readInto(try.name, buf)
		if err == nil {
			return t.take(try.name, b, try.parse), nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("mount table: %w", first)
}

func (t *mountTable) take(name string, text []byte, parse func(string) []Mount) []Mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare = text
	if name != t.name || string(text) != t.text {
		t.name, t.text = name, string(text)
		t.all = slices.Clip(parse(t.text))
	}
	return t.all
}
