package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manDir is where hack/packages wants the man pages. cobra's generator is in a test so that it is
// no part of the program.
var manDir = flag.String("man", "", "write the man pages to this directory")

func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	root := testApp(nil, &safeBuffer{}, &safeBuffer{}).rootCommand()
	root.DisableAutoGenTag = true // the pages depend on the commands only
	root.PersistentFlags().Lookup("api").DefValue = "the daemon's socket"
	forMan(root)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "drivebay", Manual: "drivebay"}, dir); err != nil {
		t.Fatal(err)
	}
	var pages func(*cobra.Command)
	count := 0
	pages = func(cmd *cobra.Command) {
		count++
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil || !strings.HasPrefix(string(text), ".nh\n.TH") || !strings.Contains(string(text), " - "+strings.Split(cmd.Short, "`")[0]) {
			t.Errorf("%s: %v\n%.200s", cmd.CommandPath(), err, text)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				pages(sub)
			}
		}
	}
	pages(root)
	if count < 40 {
		t.Errorf("only %d pages", count)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "drivebay-serve.1")); !strings.Contains(string(text), "DRIVEBAY_*") || !strings.Contains(string(text), "csi-endpoint") {
		t.Errorf("drivebay-serve.1:\n%s", text)
	}
}

// forMan prepares the texts of a command for cobra's generator, which takes them for Markdown.
func forMan(cmd *cobra.Command) {
	cmd.Long = strings.NewReplacer("*", `\*`, "<", `\<`).Replace(cmd.Long)
	for _, sub := range cmd.Commands() {
		forMan(sub)
	}
}
