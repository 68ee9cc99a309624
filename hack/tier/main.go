// Command tier runs one tier of tests. It fails if too few tests ran or if one was
// skipped: a tier that cannot run must not look green.
//
//	go run ./hack/tier -name root -min 5 -- -tags root -run Root ./...
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	name := flag.String("name", "", "name of the tier; names the log")
	dir := flag.String("dir", ".", "the folder to run in, of a module of its own")
	least := flag.Int("min", 1, "how many tests must have run")
	flag.Parse()
	if *name == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: tier -name NAME [-min N] [-dir FOLDER] -- ARGUMENTS OF go test")
		os.Exit(2)
	}
	if err := run(*name, *dir, *least, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "tier %s: %v\n", *name, err)
		os.Exit(1)
	}
}

func run(name, dir string, least int, args []string) error {
	if err := os.MkdirAll(".cache", 0o755); err != nil {
		return err
	}
	logPath := filepath.Join(".cache", "test-"+name+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1"}, args...)...)
	cmd.Stderr, cmd.Dir = os.Stderr, dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	passed, skipped, failed := tally(out, log)
	err = cmd.Wait()
	fmt.Printf("tier %s: %d passed, %d failed, %d skipped; log in %s\n", name, passed, len(failed), len(skipped), logPath)
	for _, t := range failed {
		fmt.Println("FAILED", t)
	}
	for _, t := range skipped {
		fmt.Println("skipped", t)
	}
	switch {
	case err != nil:
		return fmt.Errorf("go test: %w", err)
	case len(skipped) > 0:
		return fmt.Errorf("%d tests were skipped: this tier has what they need, or it is not this tier", len(skipped))
	case passed < least:
		return fmt.Errorf("%d tests ran, at least %d must", passed, least)
	}
	return nil
}

// slow is the duration in seconds from which a test is shown when it passes.
const slow = 1

// tally counts tests, including subtests. It shows packages and slow tests as they end,
// and the output of those that fail.
func tally(out interface{ Read([]byte) (int, error) }, log *os.File) (passed int, skipped, failed []string) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	kept := map[string][]string{}
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			fmt.Fprint(log, e.Output)
			kept[key] = append(kept[key], e.Output)
		case "pass":
			if e.Test != "" {
				passed++
				delete(kept, key)
				if e.Elapsed >= slow && !strings.Contains(e.Test, "/") {
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
			if e.Test != "" {
				failed = append(failed, key)
			}
		}
	}
	return passed, skipped, failed
}
