package daemon

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The program runs on after its pages were unmapped, and most of them are not needed again.
func TestForgetFiles(t *testing.T) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	before := resident(t, program)
	if _, err := os.ReadFile(program); err != nil { // in the page cache, for the comparison
		t.Fatal(err)
	}
	forgetFiles()
	if after := resident(t, program); before == 0 || after > before*3/4 {
		t.Errorf("%d kB of the program were resident, %d kB are", before, after)
	}
}

// resident returns how many kB of a file's read-only mappings are resident.
func resident(t *testing.T, file string) (sum int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	counts := false
	for line := range strings.Lines(string(smaps)) {
		if f := strings.Fields(line); len(f) >= 5 && strings.Contains(f[0], "-") {
			counts = f[len(f)-1] == file && !strings.Contains(f[1], "w")
		} else if counts && f[0] == "Rss:" {
			var n int
			if _, err := fmt.Sscan(f[1], &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// A mapping with a page of its own is kept, and so is one that can be written to.
func TestPristine(t *testing.T) {
	const entry = "%s %s 00000000 fe:00 12 /bin/x%s\nSize: 4 kB\nAnonymous: %6d kB\nVmFlags: rd mr mw me \n"
	smaps := fmt.Sprintf(entry, "1000-2000", "r-xp", "", 0) + fmt.Sprintf(entry, "2000-3000", "r--p", "", 0) + fmt.Sprintf(entry, "3000-4000", "r--p", "", 4) +
		fmt.Sprintf(entry, "4000-5000", "rw-p", "", 0) + fmt.Sprintf(entry, "5000-6000", "r--s", "y (deleted)", 0) + "7000-8000 rw-p 00000000 00:00 0 \nAnonymous: 0 kB\n8000-9000 r-xp 00000000 00:00 0 [vdso]\nAnonymous: 0 kB\n"
	want := []mapping{{0x1000, 0x2000}, {0x2000, 0x3000}, {0x5000, 0x6000}}
	if is := pristine([]byte(smaps)); !slices.Equal(is, want) {
		t.Errorf("%x", is)
	}
}
