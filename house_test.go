package drivebay

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Limits of a package and of a type, without tests. A larger package has more than one subject, and
// so has a type with more methods.
const (
	maxLines     = 3500
	maxRoomLines = 2000 // of an engine, and of a package below one
	maxMethods   = 40
)

// tooLarge holds the packages and types beyond a limit with the size that they may have: it is to
// shrink.
var tooLarge = map[string]int{}

// TestLimits: no package of the product has more than maxLines lines, and no type more than
// maxMethods methods.
func TestLimits(t *testing.T) {
	within := func(what string, n, most int, of string) {
		if most = max(most, tooLarge[what]); n > most {
			t.Errorf("%s has %d %s, at most %d", what, n, of, most)
		}
	}
	seen := 0
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		if strings.HasPrefix(name, "hack/") || name == "addons/healer" || len(p.GoFiles) == 0 { // healer is generated
			continue
		}
		seen++
		lines, methods := size(t, name)
		within(name, lines, maxLines, "lines")
		for typ, n := range methods {
			within(name+"."+typ, n, maxMethods, "methods")
		}
	}
	if seen < 40 {
		t.Errorf("only %d packages were counted", seen)
	}
}

// TestDictionary: the root package writes no pages and reads no files. What derives one thing from
// another by a table of rules is in a package beside it.
func TestDictionary(t *testing.T) {
	for _, p := range packages(t) {
		if short(p.ImportPath) != "." {
			continue
		}
		for _, not := range []string{"bufio", "io", "os", "html/template", "text/template"} {
			if slices.Contains(p.Imports, not) {
				t.Errorf("the root package imports %s", not)
			}
		}
		return
	}
	t.Error("the root package was not listed")
}

// TestCallsByFile: a call of CSI is in a file that is named after its service.
func TestCallsByFile(t *testing.T) {
	files, err := filepath.Glob("csi/*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range csiCall.FindAllSubmatch(text, -1) {
			calls++
			if !strings.HasPrefix(filepath.Base(file), string(call[1])) {
				t.Errorf("%s has %s of the service %s", file, call[2], call[1])
			}
		}
	}
	if calls < 25 {
		t.Errorf("only %d calls were found", calls)
	}
}

var csiCall = regexp.MustCompile(`(?m)^func \(\w \*(controller|node|identity)\) ([A-Z]\w+)\(.*\bwire\.`)

// size counts the lines of a package without its tests, and the methods of its types.
func size(t *testing.T, dir string) (lines int, methods map[string]int) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	methods = map[string]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
		for _, m := range receiver.FindAllSubmatch(text, -1) {
			methods[string(m[1])]++
		}
	}
	return lines, methods
}

// receiver matches the receiver of a method, which may have no name.
var receiver = regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)`)
