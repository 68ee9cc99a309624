package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// helmFiles are the sources of Helm that define the flags of a command.
var helmFiles = map[string][]string{
	"install":   {"cmd/helm/install.go", "cmd/helm/flags.go", "pkg/cli/environment.go"},
	"template":  {"cmd/helm/template.go", "cmd/helm/install.go", "cmd/helm/flags.go", "pkg/cli/environment.go"},
	"upgrade":   {"cmd/helm/upgrade.go", "cmd/helm/flags.go", "pkg/cli/environment.go"},
	"uninstall": {"cmd/helm/uninstall.go", "pkg/cli/environment.go"},
}

var helmDir = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3").Output()
	return strings.TrimSpace(string(out)), err
})

// helmFlags reads the flags of a command from the source of the version of Helm that this module has.
func helmFlags(t *testing.T, command string) (all []option) {
	t.Helper()
	dir, err := helmDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range helmFiles[command] {
		flags := fileFlags(t, filepath.Join(dir, file))
		if len(flags) < 5 {
			t.Fatalf("%s has %d flags", file, len(flags))
		}
		all = append(all, flags...)
	}
	return all
}

// helm does what a command does with the chart, but for the objects that it would send to a cluster: it reads the values, checks
// them with the schema, renders, and decodes every object.
func (c *commands) helm(words []string) error {
	if len(words) == 0 || helmFiles[words[0]] == nil {
		return fmt.Errorf("helm %s is not known to this test", strings.Join(words, " "))
	}
	command := words[0]
	rest, given, err := parse(words[1:], helmFlags(c.t, command))
	if err != nil {
		return err
	}
	if n := given["namespace"]; len(n) != 1 || n[0] != namespace {
		return fmt.Errorf("the namespace is %v: the other commands of the page use %s", n, namespace)
	}
	wanted := 2
	if command == "uninstall" {
		wanted = 1
	}
	if len(rest) != wanted {
		return fmt.Errorf("helm %s %v", command, rest)
	}
	release := rest[0]
	before, installed := c.releases[release]
	switch {
	case command == "install" && installed:
		return fmt.Errorf("the release %s is installed", release)
	case (command == "upgrade" || command == "uninstall") && !installed:
		return fmt.Errorf("the release %s is not installed", release)
	}
	if command == "uninstall" {
		delete(c.releases, release)
		return nil
	}
	if chart := filepath.Clean(rest[1]); root+chart != chartDir {
		return fmt.Errorf("the chart is not %s", chart)
	}
	values, err := c.values(given)
	if err != nil {
		return err
	}
	options := install
	options.Name = release
	if command == "upgrade" {
		options.IsInstall, options.IsUpgrade, options.Revision = false, true, 2
		if len(given["reset-then-reuse-values"]) > 0 {
			values = chartutil.MergeTables(values, maps.Clone(before))
		} else if len(before) > 0 {
			return errors.New("without --reset-then-reuse-values the values of the installation are lost")
		}
	}
	r, err := renderRelease(values, options)
	if err != nil {
		return err
	}
	if len(decode(c.t, r.objects)) < 10 {
		return errors.New("it renders too few objects")
	}
	c.releases[release] = values
	return nil
}

// values reads --values, then --set, as Helm does.
func (c *commands) values(given map[string][]string) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range given["values"] {
		text, found := c.files[name]
		if !found {
			b, err := os.ReadFile(root + name)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		var more map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &more); err != nil {
			return nil, err
		}
		values = chartutil.MergeTables(more, values)
	}
	for _, text := range given["set"] {
		if err := strvals.ParseInto(text, values); err != nil {
			return nil, err
		}
	}
	return values, nil
}
