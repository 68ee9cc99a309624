package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Sources holds the sources of a configuration.
type Sources struct {
	File  string            // path of the YAML file; empty: none
	Usual string            // path of the file that is read instead of none, if it exists
	Env   []string          // as os.Environ gives it
	Flags map[string]string // path of the key -> text, for the flags on the command line
}

// Loaded is a configuration with warnings about it.
type Loaded struct {
	Config
	File     string // the file that was read; empty: none
	Warnings []string

	// Unfinished is why the file may be half written; empty: it seems to be whole. A selector that is cut off can select more drives.
	Unfinished string
}

// simEvidence is the default of poll.evidence for simulated drives: an injected fault has to show
// soon, and reading them costs nothing.
const simEvidence = 10 * time.Second

// Load reads all sources. Its error joins all errors, one line each.
func Load(src Sources) (Loaded, error) {
	l := loader{config: Default(), origin: map[string]string{}}
	l.fields = l.config.Fields()
	name, data, err := src.read()
	if err != nil {
		return Loaded{}, fmt.Errorf("config file: %w", err)
	}
	if name != "" {
		l.file(name, data)
	}
	l.env(src.Env)
	l.flags(src.Flags)
	if _, set := l.origin["poll.evidence"]; !set && l.config.Sim != "" {
		l.config.Poll.Evidence = simEvidence
	}
	l.check()
	return Loaded{l.config, name, l.warnings, l.unfinished}, errors.Join(l.errs...)
}

// read reads the file of the sources. Only the usual one may be missing.
func (src Sources) read() (name string, data []byte, err error) {
	if src.File != "" {
		data, err = os.ReadFile(src.File)
		return src.File, data, err
	}
	if src.Usual == "" || src.otherMachine() {
		return "", nil, nil
	}
	if data, err = os.ReadFile(src.Usual); errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	return src.Usual, data, err
}

// otherMachine reports whether a flag or a variable names a simulated or recorded machine: the usual
// file is about this one.
func (src Sources) otherMachine() bool {
	for _, key := range []string{"sim", "root"} {
		if src.Flags[key] != "" || slices.ContainsFunc(src.Env, func(e string) bool {
			name, text, _ := strings.Cut(e, "=")
			return name == envOf(key) && text != ""
		}) {
			return true
		}
	}
	return false
}

// Parse reads and checks the text of one file without other sources.
func Parse(name string, data []byte) (Config, error) {
	l := loader{config: Default(), origin: map[string]string{}}
	l.fields = l.config.Fields()
	l.file(name, data)
	l.check()
	return l.config, errors.Join(l.errs...)
}

// loader fills a configuration and records the origin of each value, so that an error found at the
// end still names the line.
type loader struct {
	config   Config
	fields   []Field
	origin   map[string]string // path of a key -> "drivebay.yaml:7", "DRIVEBAY_ROOT" or "--root"
	bad      map[string]bool   // keys that already have an error: their value is not checked again
	errs     []error
	warnings []string

	unfinished string
}

func (l *loader) fail(where, format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

// set parses a text into a key.
func (l *loader) set(f Field, where, text string) {
	l.origin[f.Path] = where
	if err := setText(f.value, text); err != nil {
		l.failKey(f.Path, where, err)
	}
}

func (l *loader) failKey(path, where string, err error) {
	if l.bad == nil {
		l.bad = map[string]bool{}
	}
	l.bad[path] = true
	l.fail(where, "%s: %w", path, err)
}

// notKeys holds variables of drivebay that are not keys of the file.
var notKeys = map[string]bool{"DRIVEBAY_CONFIG": true, "DRIVEBAY_CORPUS": true, "DRIVEBAY_TOKEN_FILE": true, "DRIVEBAY_CA_FILE": true}

func (l *loader) env(environ []string) {
	byName := map[string]Field{}
	var known []string
	for _, f := range l.fields {
		if !f.Section {
			byName[f.Env] = f
			known = append(known, f.Env)
		}
	}
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if f, ok := byName[name]; ok {
			l.set(f, name, text)
			continue
		}
		// Kubernetes sets variables such as DRIVEBAY_SERVICE_HOST in every container, so an
		// unknown one is not an error. One that resembles a key gives a warning.
		if !strings.HasPrefix(name, "DRIVEBAY_") || notKeys[name] {
			continue
		}
		if near, ok := Nearest(name, known); ok {
			l.warnings = append(l.warnings, fmt.Sprintf("variable %s is unknown: did you mean %s?", name, near))
		}
	}
}

func (l *loader) flags(given map[string]string) {
	for _, f := range l.fields {
		if text, ok := given[f.Path]; ok {
			l.set(f, "--"+f.Flag, text)
		}
	}
}
