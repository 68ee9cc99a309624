//go:build lab

package suite

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
)

// notRun are the commands of docs/lab.md that this test leaves out.
var notRun = map[string]string{
	"go run ./hack/lab clean": "would throw away what the other tests stand on",
	"go test -tags lab -count=1 -run 'LabPull' -v ./hack/lab/suite": "is a test of this very run",
}

var pageCommand = regexp.MustCompile(`(?m)^ {4}((?:go |echo |CGO_ENABLED=|DRIVEBAY_)[^#\n]*)`)

// TestLabPage runs the commands of docs/lab.md as they stand there, and compares
// its example with the one that is tested.
func TestLabPage(t *testing.T) {
	t.Parallel()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/lab.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Join(root, ".cache/cover")) })
	ran := 0
	for _, found := range pageCommand.FindAllStringSubmatch(string(page), -1) {
		command := strings.TrimSpace(found[1])
		if notRun[command] != "" {
			continue
		}
		ran++
		t.Run(command, func(t *testing.T) {
			cmd := exec.Command("/bin/bash", "-e", "-o", "pipefail", "-c", command)
			cmd.Dir, cmd.Stdin = root, strings.NewReader("drivebay drives\nexit\n")
			if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if ran < 6 {
		t.Errorf("only %d commands found", ran)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(example)+"```") {
		t.Error("the example of the page is not example_test.go")
	}
}
