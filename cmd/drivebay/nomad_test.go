package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

// nomadJob is deploy/nomad/drivebay.nomad.hcl as Nomad reads it on the client node-1.
type nomadJob string

func readNomadJob(t *testing.T) nomadJob {
	t.Helper()
	b, err := os.ReadFile("../../deploy/nomad/drivebay.nomad.hcl")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(string(b), "")
	text = strings.NewReplacer("${group.value}", "node-1", "${node.unique.name}", "node-1").Replace(text)
	for _, v := range regexp.MustCompile(`variable "(\w+)" \{\s*type\s*= string\s*default\s*= "([^"]*)"`).FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, "${var."+v[1]+"}", v[2])
	}
	if rest := regexp.MustCompile(`\$\{[^}]*\}`).FindString(text); rest != "" {
		t.Fatalf("the value of %s is not known", rest)
	}
	return nomadJob(text)
}

// value returns the quoted value of a key.
func (j nomadJob) value(t *testing.T, key string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*`+key+`\s*= "([^"]*)"`).FindAllStringSubmatch(string(j), -1)
	if len(m) != 1 {
		t.Fatalf("%s has %d values", key, len(m))
	}
	return m[0][1]
}

// list returns the quoted elements of a list.
func (j nomadJob) list(t *testing.T, key string) (out []string) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*` + key + ` = \[([^\]]*)\]`).FindStringSubmatch(string(j))
	if m == nil {
		t.Fatalf("there is no list %s", key)
	}
	for _, quoted := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(m[1], -1) {
		out = append(out, quoted[1])
	}
	return out
}

// TestNomadJob: the arguments of the job are flags of the program, with values that fit each other
// and the directories that Nomad mounts.
func TestNomadJob(t *testing.T) {
	job := readNomadJob(t)
	args := job.list(t, "args")
	root := testApp(nil, &safeBuffer{}, &safeBuffer{}).rootCommand()
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.CommandPath() != "drivebay serve" {
		t.Fatalf("%v: %v", args, err)
	}
	flags := &cobra.Command{Use: "serve"}
	flagsGiven := configFlags(flags)
	if err := flags.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	given := flagsGiven()
	if len(given) != len(rest) {
		t.Errorf("%d arguments, %d flags: %v", len(rest), len(given), given)
	}
	for _, arg := range rest {
		name, _, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if cmd.Flag(name) == nil || !hasValue {
			t.Errorf("%s is not --FLAG=VALUE of `drivebay serve`", arg)
		}
	}
	loaded, err := config.Load(config.Sources{Flags: given})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.SocketPath(loaded.CSIEndpoint), job.value(t, "mount_dir")+"/csi.sock"; got != want {
		t.Errorf("the socket is %s, Nomad connects to %s", got, want)
	}
	base := job.value(t, "stage_publish_base_dir")
	if !slices.ContainsFunc(loaded.VolumeRoots, func(r string) bool { return strings.HasPrefix(base, r+"/") }) {
		t.Errorf("volumes are mounted below %s, which is not in %v", base, loaded.VolumeRoots)
	}
	if want := loaded.VolumeRoots[0] + "/" + job.value(t, `\s{8}type`) + "/" + job.value(t, "id"); base != want {
		t.Errorf("Nomad's directory of the plugin is %s, not %s", want, base)
	}
	if loaded.NodeID != "node-1" {
		t.Errorf("the node is %q", loaded.NodeID)
	}
}

// TestContainerMounts: the job mounts what the command of docs/install.md does, but for /dev, which
// Nomad mounts into each CSI plugin.
func TestContainerMounts(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "docker run ") {
			run = strings.Fields(line)
		}
	}
	var mounts []string
	for i, word := range run {
		if word == "-v" && run[i+1] != "/dev:/dev" {
			mounts = append(mounts, run[i+1])
		}
	}
	if got := readNomadJob(t).list(t, "volumes"); !slices.Equal(got, mounts) {
		t.Errorf("the job mounts %v, docs/install.md %v", got, mounts)
	}
	if !slices.Contains(run, "--pid=host") || !slices.Contains(run, "--ipc=host") || !slices.Contains(run, "--privileged") {
		t.Errorf("docs/install.md: %v", run)
	}
}
