// Command tier runs one tier of tests. It fails if too few tests ran or, without -skips, if
// one was skipped: a tier that cannot run must not look green. At the end it names the tests
// that failed and what they said; the whole output stays in .cache/test-NAME.log.
//
//	go run ./hack/tier -name root -min 5 -- -tags root -run Root ./...
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json (go doc test2json, go help buildjson).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// tier is what to run, and what must come of it.
type tier struct {
	name, dir string
	least     int
	skips     bool
	slow      float64 // from so many seconds a test is shown when it passes
}

func main() {
	var t tier
	flag.StringVar(&t.name, "name", "", "name of the tier; names the log")
	flag.StringVar(&t.dir, "dir", ".", "the folder to run in, of a module of its own")
	flag.IntVar(&t.least, "min", 1, "how many tests must have run")
	flag.BoolVar(&t.skips, "skips", false, "tests may be skipped; their number is shown")
	flag.Float64Var(&t.slow, "slow", 1, "show passed tests that took at least so many seconds")
	flag.Parse()
	if t.name == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: tier -name NAME [-min N] [-dir FOLDER] [-skips] [-slow SECONDS] -- ARGUMENTS OF go test")
		os.Exit(2)
	}
	if err := t.run(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "tier %s: %v\n", t.name, err)
		os.Exit(1)
	}
}

func (t tier) run(args []string) error {
	if err := os.MkdirAll(".cache", 0o755); err != nil {
		return err
	}
	logPath := filepath.Join(".cache", "test-"+t.name+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1"}, args...)...)
	cmd.Stderr, cmd.Dir = os.Stderr, t.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	passed, skipped, failed := t.tally(out, log)
	err = cmd.Wait()
	fmt.Printf("tier %s: %d passed, %d failed, %d skipped; log in %s\n", t.name, passed, len(failed), len(skipped), logPath)
	for _, t := range failed {
		fmt.Println("FAILED", t)
	}
	for _, t := range skipped {
		fmt.Println("skipped", t)
	}
	switch {
	case err != nil:
		return fmt.Errorf("go test: %w", err)
	case len(skipped) > 0 && !t.skips:
		return fmt.Errorf("%d tests were skipped: this tier has what they need, or it is not this tier", len(skipped))
	case passed < t.least:
		return fmt.Errorf("%d tests ran, at least %d must", passed, t.least)
	}
	return nil
}

// tally counts tests, including subtests. It shows packages and slow tests as they end,
// and the output of those that fail, and of packages that do not compile.
func (t tier) tally(out io.Reader, log io.Writer) (passed int, skipped, failed []string) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	kept := map[string][]string{}
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		key := strings.TrimSpace(e.Package + " " + e.Test)
		switch e.Action {
		case "build-output":
			fmt.Fprint(log, e.Output)
			fmt.Print(e.Output)
		case "build-fail":
			failed = append(failed, e.ImportPath+" (does not compile)")
		case "output":
			fmt.Fprint(log, e.Output)
			kept[key] = append(kept[key], e.Output)
		case "pass":
			if e.Test != "" {
				passed++
				delete(kept, key)
				if e.Elapsed >= t.slow && !strings.Contains(e.Test, "/") {
					fmt.Printf("pass %s %.1fs\n", e.Test, e.Elapsed)
				}
			} else {
				fmt.Printf("ok   %s %.1fs\n", e.Package, e.Elapsed)
			}
		case "skip":
			if e.Test != "" {
				skipped = append(skipped, key)
			}
		case "fail":
			for _, l := range kept[key] {
				fmt.Print(l)
			}
			if e.Test != "" || !names(failed, e.Package) { // a package can fail without a test, such as by a panic in init
				failed = append(failed, key+said(kept[key]))
			}
		}
	}
	return passed, skipped, failed
}

// message is the first line of what a test says by t.Error or t.Log.
var message = regexp.MustCompile(`^ +\w+\.go:\d+: `)

// said returns the last messages of a test and the beginning of each, for the end of a long output of many tests.
func said(output []string) string {
	const messages, lines, width = 4, 4, 400
	var all []string
	n := lines
	for _, l := range output {
		if l = strings.TrimRight(l, "\n"); message.MatchString(l) {
			all, n = append(all, ""), 0
		}
		if n < lines && !strings.HasPrefix(l, "---") {
			all[len(all)-1] += "\n" + l[:min(len(l), width)]
			n++
		}
	}
	return strings.Join(all[max(0, len(all)-messages):], "")
}

// names reports whether the list holds a test of a package, or the package itself.
func names(failed []string, pkg string) bool {
	return slices.ContainsFunc(failed, func(f string) bool { return f == pkg || strings.HasPrefix(f, pkg+" ") })
}
