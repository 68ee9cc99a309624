// Command thirdparty writes THIRD_PARTY: the modules that are linked into drivebay and their
// licenses. It fails if a license may not be part of drivebay.
//
//	go run ./hack/thirdparty >THIRD_PARTY
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	text, err := thirdParty(".")
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "thirdparty:", err)
		os.Exit(1)
	}
}

// module is one module of the program, or the standard library.
type module struct {
	name, version string
	dir           string
	below         []string // directories of its linked packages
	licenses      []string // SPDX identifiers
	texts         []string // of its license, then of its notices
}

// thirdParty returns the page about the modules of the program in the source tree at root.
func thirdParty(root string) ([]byte, error) {
	modules, err := linked(root)
	if err != nil {
		return nil, err
	}
	for i := range modules {
		if err := modules[i].read(); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	write(&b, modules)
	return b.Bytes(), nil
}

// linked returns the modules whose packages are linked into the released program, by name.
func linked(root string) ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-tags", "grpcnotrace", "-json=Dir,Module", "./cmd/drivebay")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	modules := []module{{name: "the Go standard library", dir: strings.TrimSpace(string(goroot))}}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		i := slices.IndexFunc(modules, func(m module) bool { return m.name == p.Module.Path })
		if i < 0 {
			i = len(modules)
			modules = append(modules, module{name: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir})
		}
		modules[i].below = append(modules[i].below, p.Dir)
	}
	slices.SortFunc(modules[1:], func(a, b module) int { return cmp.Compare(a.name, b.name) })
	return modules, nil
}

// These match the names of the files that have to be passed on with a program.
var (
	licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents)`)
)

// read reads the licenses and the notices of a module: of its root, and of what it copied from
// others into the directories of linked packages.
func (m *module) read() error {
	dirs := []string{m.dir}
	for _, dir := range m.below {
		for ; dir != m.dir && strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, dir := range dirs {
		if err := m.readDir(dir); err != nil {
			return err
		}
	}
	if len(m.licenses) == 0 {
		return fmt.Errorf("%s has no license file in %s", m.name, m.dir)
	}
	slices.Sort(m.licenses)
	m.licenses = slices.Compact(m.licenses)
	return nil
}

func (m *module) readDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w: run `go mod download`", m.name, err)
	}
	for _, pattern := range []*regexp.Regexp{licenseFile, noticeFile} {
		for _, e := range entries {
			if e.IsDir() || !pattern.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			m.texts = append(m.texts, strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")+"\n")
			if pattern != licenseFile {
				continue
			}
			found, err := identify(string(text))
			if err != nil {
				return fmt.Errorf("%s: %s: %w", m.name, e.Name(), err)
			}
			m.licenses = append(m.licenses, found...)
		}
	}
	return nil
}

// write prints the table of modules and each text once, with the modules that it belongs to.
func write(w io.Writer, modules []module) {
	fmt.Fprint(w, "drivebay contains the software below. This file is written by `make generate`.\n\n")
	var texts []string
	owners := map[string][]string{}
	for _, m := range modules {
		fmt.Fprintf(w, "%-70s %s\n", strings.TrimSpace(m.name+" "+m.version), strings.Join(m.licenses, ", "))
		for _, text := range m.texts {
			if owners[text] == nil {
				texts = append(texts, text)
			}
			owners[text] = append(owners[text], m.name)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(w, "\n%s\n%s:\n\n%s", strings.Repeat("=", 80), strings.Join(owners[text], "\n"), text)
	}
}
