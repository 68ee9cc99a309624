// Command fuzz runs every fuzz target of the module for a short while.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

func main() {
	// A number of runs, not a time: go test reports a deadline during an input as a
	// failure of that input (golang/go issue 75804).
	long := flag.String("time", "5000x", "how long each target runs, as go test -fuzztime takes it")
	only := flag.String("target", "", "run the targets of this name only")
	flag.Parse()
	ran := 0
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range target.FindAllStringSubmatch(string(src), -1) {
			if *only != "" && m[1] != *only {
				continue
			}
			pkg := "./" + filepath.Dir(path)
			fmt.Printf("%s %s\n", pkg, m[1])
			cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+m[1]+"$", "-fuzztime", *long, "-fuzzminimizetime", "5x", pkg)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s %s: %w\n%s", pkg, m[1], err, out)
			}
			ran++
		}
		return nil
	})
	if err == nil && ran == 0 {
		err = fmt.Errorf("no such fuzz target found: run it from the root of the module")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
	fmt.Printf("%d targets, %s each: nothing found\n", ran, *long)
}
