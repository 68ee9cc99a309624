// Command packages builds the Debian and RPM packages of drivebay from a compiled program.
//
//	go -C hack/packages run . -binary ../../bin/drivebay -version v1.2.3 -out ../../bin/packages
//
// The same program, version and SOURCE_DATE_EPOCH give the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	var b build
	binary := flag.String("binary", "../../bin/drivebay", "the program")
	out := flag.String("out", "../../bin/packages", "directory for the packages")
	flag.StringVar(&b.described, "version", "", "version, as git describe prints it")
	flag.StringVar(&b.arch, "arch", "amd64", "architecture of the program, as Go names it")
	flag.Parse()
	err := b.run(*binary, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// root is the source tree.
const root = "../.."

// build is one run of the packager.
type build struct {
	described, arch string

	work     string // holds the generated files
	version  string
	modified time.Time // of every file
}

// run writes the packages for a program to the directory out.
func (b *build) run(binary, out string) (err error) {
	if b.modified, err = modified(); err != nil {
		return err
	}
	b.version = version(b.described, b.modified)
	if b.work, err = os.MkdirTemp("", "drivebay-packages-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := b.generate(binary); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		name, err := b.write(format, binary, out)
		if err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
		fmt.Println(name)
	}
	return nil
}

// modified returns the time of the commit, or of SOURCE_DATE_EPOCH
// (https://reproducible-builds.org/specs/source-date-epoch).
func modified() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("time of the commit: %w: set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// write writes one package and returns its name.
func (b *build) write(format, binary, out string) (string, error) {
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	info := nfpm.WithDefaults(b.info(binary))
	info.Overridables = b.parts(format, info.Overridables)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	name := filepath.Join(out, packager.ConventionalFileName(info))
	info.Target = name
	var pkg bytes.Buffer
	if err := packager.Package(info, &pkg); err != nil {
		return "", err
	}
	return name, os.WriteFile(name, pkg.Bytes(), 0o644)
}

// generate makes what the packages contain and the source tree does not.
func (b *build) generate(binary string) error {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := exec.Command(binary, "completion", shell).Output()
		if err == nil {
			err = os.WriteFile(b.made(shell), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
	}
	man := b.made("man")
	if err := os.Mkdir(man, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestManPages$", "./cmd/drivebay", "-args", "-man", man)
	cmd.Dir, cmd.Env = root, append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.modified.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("man pages: %w\n%s", err, out)
	}
	unit, err := os.ReadFile(filepath.Join(root, "deploy/systemd/drivebay.service"))
	if err != nil {
		return err
	}
	packaged := bytes.Replace(unit, []byte("/usr/local/bin/drivebay"), []byte("/usr/bin/drivebay"), 1)
	if bytes.Equal(unit, packaged) {
		return fmt.Errorf("the unit does not start /usr/local/bin/drivebay")
	}
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"unit":       packaged,
		"copyright":  []byte(copyright),
		"changes.gz": compress(changes),
		"debian.gz":  compress([]byte(b.debianChangelog())),
	} {
		if err := os.WriteFile(b.made(name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) made(name string) string { return filepath.Join(b.work, name) }

// compress writes no time into its header.
func compress(text []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

// file returns one file of a package, which belongs to root.
func (b *build) file(source, target, kind string, mode os.FileMode) *files.Content {
	return &files.Content{
		Source: source, Destination: target, Type: kind,
		FileInfo: &files.ContentFileInfo{Mode: mode, MTime: b.modified, Owner: "root", Group: "root"},
	}
}
