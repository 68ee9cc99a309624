package daemon

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// forgetFiles unmaps the pages of files that are only read here: of the program, of which the start uses most pages once and the
// work after it a part, and of the state. They stay in the page cache, and those that are used again are mapped again from there
// (madvise(2), MADV_DONTNEED). Without /proc nothing is saved.
func forgetFiles() {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range pristine(smaps) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED) // an error leaves the pages
	}
}

type mapping struct{ from, to uintptr }

// pristine returns the mappings of files that cannot be written to, and of which no page was: for a
// page that was written to, such as one with relocations, there is no second copy
// (proc_pid_smaps(5), "Anonymous").
func pristine(smaps []byte) (out []mapping) {
	var at mapping
	candidate := false
	for line := range strings.Lines(string(smaps)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if from, to, is := strings.Cut(f[0], "-"); is { // "ADDRESS-ADDRESS r-xp OFFSET DEVICE INODE PATH"
			first, bad1 := strconv.ParseUint(from, 16, 64)
			last, bad2 := strconv.ParseUint(to, 16, 64)
			at = mapping{uintptr(first), uintptr(last)}
			candidate = bad1 == nil && bad2 == nil && len(f) >= 6 && strings.HasPrefix(f[5], "/") && (f[1] == "r-xp" || f[1] == "r--p" || f[1] == "r--s")
		} else if candidate && f[0] == "Anonymous:" && f[1] == "0" {
			out = append(out, at)
		}
	}
	return out
}
