package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tours are the pages whose console blocks are run, line by line, each page against a simulated rack of its
// own, with the number of their commands. Blocks marked sh hold what needs root, a file of the reader's or
// another terminal; those commands are run by CI or by other tests.
var tours = map[string]int{"README.md": 20, "docs/install.md": 2, "docs/drive-replacement.md": 24, "examples/README.md": 13, "docs/volumes.md": 18}

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestTours: every command of a tour succeeds, and prints the lines that the page shows below it, in this
// order. In a page, "..." stands for what is left out.
func TestTours(t *testing.T) {
	t.Chdir("../..")
	for page, commands := range tours {
		t.Run(page, func(t *testing.T) {
			socket := "unix://" + filepath.Join(shortDir(t), "csi.sock")
			r := serve(t, "--sim", "examples/rack24.yaml", "--csi-endpoint", socket)
			env := maps.Clone(r.env) // the daemon reads its own
			env["CSI_ENDPOINT"] = socket
			eventually(t, patience, func() bool {
				out, _, _ := call(t, env, "drives")
				return strings.Contains(out, "24 drives: 24 GOOD")
			}, r.err.String)
			ran := tourOf(t, page)
			for _, c := range ran {
				c.run(t, env)
			}
			if len(ran) < commands {
				t.Errorf("only %d commands found: are the blocks still marked console?", len(ran))
			}
		})
	}
}

// shown is a command of a page, and the lines of output that the page shows.
type shown struct {
	args  []string
	lines []string
}

// tourOf returns the commands of a page.
func tourOf(t *testing.T, page string) (list []*shown) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
		var last *shown
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			command, isCommand := strings.CutPrefix(line, "$ ")
			args, ours := strings.CutPrefix(command, "bin/drivebay ")
			switch {
			case isCommand && ours:
				args, _, _ = strings.Cut(args, " #")
				last = &shown{args: words(args)}
				list = append(list, last)
			case isCommand:
				last = nil
			case last != nil && line != "...":
				last.lines = append(last.lines, line)
			}
		}
	}
	return list
}

// words divides a command line as a shell does. The pages quote only with single quotes.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// changing are the commands of the tours that change something. The others are repeated until they print
// what the page shows: the daemon sees a change within seconds.
var changing = regexp.MustCompile(`^(sim fault|refresh|release|cancel|force-remove|replace|cordon|locate|selftest|volume (create|expand)|heal|csi Node(Stage|Publish)Volume)\b`)

func (c *shown) run(t *testing.T, env map[string]string) {
	t.Helper()
	line := strings.Join(c.args, " ")
	var out, errs, missing string
	var code int
	try := func() bool {
		printed, said, status := call(t, env, c.args...)
		if out != "" && status != exitOK { // the time is over
			return false
		}
		out, errs, code, missing = printed, said, status, c.missing(printed)
		return code == exitOK && out != "" && missing == ""
	}
	said := func() string {
		return fmt.Sprintf("drivebay %s: exit %d, not printed: %q\n%s%s", line, code, missing, out, errs)
	}
	if changing.MatchString(line) && !strings.Contains(line, "--dry-run") {
		if !try() {
			t.Fatal(said())
		}
		return
	}
	eventually(t, patience, try, said)
}

// missing returns the first line that the page shows and the output does not have after the ones before.
func (c *shown) missing(out string) string {
	printed := strings.Split(out, "\n")
	for _, want := range c.lines {
		i := slices.IndexFunc(printed, func(line string) bool { return showsLine(want, line) })
		if i < 0 {
			return want
		}
		printed = printed[i+1:]
	}
	return ""
}

// showsLine reports whether a line of output is the one that a page shows; spaces may differ in number.
func showsLine(want, line string) bool {
	var parts []string
	for _, part := range strings.Split(strings.Join(strings.Fields(want), " "), "...") {
		parts = append(parts, regexp.QuoteMeta(strings.TrimSpace(part)))
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(strings.Join(strings.Fields(line), " "))
}

// TestShowsLine: a page that shows something else than the output is noticed.
func TestShowsLine(t *testing.T) {
	for _, row := range []struct {
		want, line string
		shows      bool
	}{
		{"a b", "  a   b", true}, {"a b", "a b c", false}, {"a ...", "a b c", true}, {"... c", "a b c", true}, {"a ... c", "a b c", true}, {"a ... d", "a b c", false}, {"a.c", "abc", false}, {"drive ...: done", "drive x: done", true},
	} {
		if got := showsLine(row.want, row.line); got != row.shows {
			t.Errorf("%q in %q: %v", row.want, row.line, got)
		}
	}
	c := shown{lines: []string{"b", "a"}}
	if got := c.missing("a\nb\n"); got != "a" {
		t.Errorf("the order: %q is missing", got)
	}
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// Every command that docs/install.md shows for a root shell is run by TestLabPackage, or is about a
// file that another test reads.
func TestInstallCommandsAreTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	lab, err := os.ReadFile("../../hack/lab/suite/package_test.go")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			count++
			line = strings.TrimSpace(line)
			target, isMake := strings.CutPrefix(line, "make ")
			switch {
			case isMake:
				if !strings.Contains(string(makefile), "\n"+target+":") {
					t.Errorf("%s: there is no such target", line)
				}
			case strings.HasPrefix(line, "docker run "), strings.HasPrefix(line, "nomad job run "): // TestContainerMounts, TestNomadJob
			case strings.HasPrefix(line, "dpkg -i bin/packages/"), strings.HasPrefix(line, "install -m 0755 bin/drivebay "): // other paths in the guest
				verb, _, _ := strings.Cut(line, " bin/")
				if !strings.Contains(string(lab), verb) {
					t.Errorf("%s: TestLabPackage does not run it", line)
				}
			default:
				if !strings.Contains(string(lab), line) {
					t.Errorf("%s: TestLabPackage does not run it", line)
				}
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d commands found", count)
	}
}

var backticked = regexp.MustCompile("`drivebay ([a-z][a-z -]*)")

// Every command that a page names exists.
func TestCommandsOfThePagesExist(t *testing.T) {
	for _, page := range append(slices.Sorted(maps.Keys(tours)), "docs/cli-tour.md", "docs/replication.md", "docs/safety.md", "docs/http.md", "docs/notices.md", "docs/drive-usage.md", "docs/events.md", "docs/volume-conditions.md", "docs/repairs.md", "docs/alerts.md", "docs/health-rules.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md") {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		root := testApp(nil, &safeBuffer{}, &safeBuffer{}).rootCommand()
		for _, m := range backticked.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(m[1])
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == root || len(rest) > 0 && cmd.HasSubCommands() {
				t.Errorf("%s names `drivebay %s`", page, m[1])
			}
		}
	}
}
