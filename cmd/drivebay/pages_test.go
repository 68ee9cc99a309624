package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// walkthroughs are the pages whose console blocks are run, line by line, against
// a simulated rack. Blocks marked sh hold what needs root, a file of the reader's
// or another terminal; those commands are run by CI or by other tests.
var walkthroughs = []string{"README.md", "docs/install.md", "docs/drive-replacement.md", "examples/README.md", "docs/volumes.md"}

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

func TestCommandsOfThePagesWork(t *testing.T) {
	t.Chdir("../..")
	socket := "unix://" + filepath.Join(shortDir(t), "csi.sock")
	r := serve(t, "--sim", "examples/rack24.yaml", "--csi-endpoint", socket)
	env := maps.Clone(r.env) // the daemon reads its own
	env["CSI_ENDPOINT"] = socket
	eventually(t, patience, func() bool {
		out, _, _ := call(t, env, "drives")
		return strings.Contains(out, "24 drives: 24 GOOD")
	}, r.err.String)
	ran := 0
	for _, page := range walkthroughs {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				args, ok := strings.CutPrefix(strings.TrimSpace(line), "$ bin/drivebay ")
				if !ok {
					continue
				}
				ran++
				if out, errs, code := call(t, env, strings.Fields(args)...); code != exitOK || out == "" {
					t.Errorf("%s: drivebay %s: exit %d, printed %q, said %q", page, args, code, out, errs)
				}
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d commands found: are the blocks still marked console?", ran)
	}
}

var backticked = regexp.MustCompile("`drivebay ([a-z][a-z -]*)")

// Every command that a page names exists.
func TestCommandsOfThePagesExist(t *testing.T) {
	for _, page := range append(walkthroughs, "docs/safety.md", "docs/drive-usage.md", "docs/events.md", "docs/volume-conditions.md", "docs/repairs.md", "docs/alerts.md", "docs/health-rules.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md") {
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
