package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
)

// built holds the packages that the tests look at, in a directory of its own.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "drivebay-packages-test-"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version=v1.2.3", "-o", filepath.Join(dir, "drivebay"), "./cmd/drivebay")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, &failure{err, out}
	}
	b := build{described: "v1.2.3", arch: "amd64"}
	return dir, b.run(filepath.Join(dir, "drivebay"), filepath.Join(dir, "first"))
})

type failure struct {
	error
	out []byte
}

func (f *failure) Error() string { return f.error.Error() + ": " + string(f.out) }

func TestMain(m *testing.M) {
	os.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	code := m.Run()
	if dir, _ := built(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func packages(t *testing.T) (deb, rpm string) {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "first", "drivebay_1.2.3-1_amd64.deb"), filepath.Join(dir, "first", "drivebay-1.2.3-1.x86_64.rpm")
}

func output(t *testing.T, argv ...string) string {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skipf("%s is not installed here", argv[0])
	}
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return string(out)
}

// TestSameBytes: a second build, at another time, gives the same packages.
func TestSameBytes(t *testing.T) {
	deb, rpm := packages(t)
	dir, _ := built()
	b := build{described: "v1.2.3", arch: "amd64"}
	if err := b.run(filepath.Join(dir, "drivebay"), filepath.Join(dir, "second")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{deb, rpm} {
		one, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(dir, "second", filepath.Base(name)))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s differs: %v", filepath.Base(name), err)
		}
	}
}

// both are files of the Debian and of the RPM package.
var both = []string{
	"/etc/drivebay/drivebay.yaml", "/usr/bin/drivebay", "/usr/lib/systemd/system/drivebay.service", "/usr/lib/udev/rules.d/61-drivebay.rules",
	"/usr/share/bash-completion/completions/drivebay", "/usr/share/fish/vendor_completions.d/drivebay.fish",
	"/usr/share/doc/drivebay/THIRD_PARTY", "/usr/share/doc/drivebay/SECURITY.md",
	"/usr/share/drivebay/drivebay.json", "/usr/share/drivebay/drivebay.rules.yaml", "/usr/share/drivebay/drivebay.yaml",
}

// compare wants a list of files, and man pages beside them.
func compare(t *testing.T, got, want []string) {
	t.Helper()
	pages := 0
	got = slices.DeleteFunc(got, func(name string) bool {
		page := strings.HasPrefix(name, "/usr/share/man/man1/drivebay") && strings.HasSuffix(name, ".1.gz")
		if page {
			pages++
		}
		return page
	})
	want = append(slices.Clone(both), want...)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || pages < 40 {
		t.Errorf("%d man pages and\n%s\nwant\n%s", pages, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDeb(t *testing.T) {
	deb, _ := packages(t)
	var list []string
	for line := range strings.Lines(output(t, "dpkg-deb", "--contents", deb)) {
		f := strings.Fields(line)
		name := strings.TrimPrefix(f[5], ".")
		if f[1] != "root/root" {
			t.Errorf("%s belongs to %s", name, f[1])
		}
		if !strings.HasSuffix(name, "/") {
			list = append(list, name)
		}
		if want := map[string]string{"/usr/bin/drivebay": "-rwxr-xr-x", "/etc/drivebay/drivebay.yaml": "-rw-r-----"}[name]; want != "" && f[0] != want {
			t.Errorf("%s has mode %s", name, f[0])
		}
	}
	compare(t, list, []string{"/usr/share/doc/drivebay/changelog.Debian.gz", "/usr/share/doc/drivebay/changelog.gz", "/usr/share/doc/drivebay/copyright",
		"/usr/share/lintian/overrides/drivebay", "/usr/share/zsh/vendor-completions/_drivebay"})
	control := t.TempDir()
	output(t, "dpkg-deb", "--control", deb, control)
	if text, err := os.ReadFile(filepath.Join(control, "conffiles")); err != nil || string(text) != "/etc/drivebay/drivebay.yaml\n" {
		t.Errorf("conffiles: %q, %v", text, err)
	}
	output(t, "dpkg-deb", "--extract", deb, control)
	unit, err := os.ReadFile(filepath.Join(control, "usr/lib/systemd/system/drivebay.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/drivebay serve\n") {
		t.Errorf("the unit: %v\n%s", err, unit)
	}
	if out := output(t, filepath.Join(control, "usr/bin/drivebay"), "config", "check", filepath.Join(control, "etc/drivebay/drivebay.yaml")); !strings.Contains(out, "is valid") {
		t.Errorf("the configuration: %s", out)
	}
}

func TestRPM(t *testing.T) {
	_, rpm := packages(t)
	var list []string
	for line := range strings.Lines(output(t, "rpm", "-qp", "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpm)) {
		if mode, name, _ := strings.Cut(strings.TrimSpace(line), " "); mode[0] != 'd' {
			list = append(list, name)
		}
	}
	compare(t, list, []string{"/usr/share/licenses/drivebay/LICENSE", "/usr/share/zsh/site-functions/_drivebay"})
	if config := output(t, "rpm", "-qpc", rpm); config != "/etc/drivebay/drivebay.yaml\n" {
		t.Errorf("configuration files: %q", config)
	}
}

// TestLintian: Debian's checker finds nothing beyond what deb-lintian-overrides explains.
func TestLintian(t *testing.T) {
	deb, _ := packages(t)
	if out := output(t, "lintian", "--allow-root", "--fail-on", "none", deb); strings.TrimSpace(out) != "" {
		t.Error(out)
	}
}

// TestScripts has the shells parse the maintainer scripts.
func TestScripts(t *testing.T) {
	scripts, _ := filepath.Glob(filepath.Join(root, "deploy/packages/*.sh"))
	if len(scripts) != 6 {
		t.Errorf("scripts: %v", scripts)
	}
	for _, s := range scripts {
		output(t, "sh", "-n", s)
	}
}

// TestPrograms: the Debian package names the packages that the container image installs.
func TestPrograms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "--no-install-recommends \\\n")
	list, _, _ = strings.Cut(list, "&&")
	want := slices.DeleteFunc(strings.Fields(strings.ReplaceAll(list, "\\", " ")), func(p string) bool { return p == "util-linux" }) // essential
	want = append(want, "passwd", "udev")                                                                                            // groupadd, the rule
	b := build{}
	o := b.parts("deb", nfpm.Overridables{})
	got := slices.Concat(o.Depends, o.Recommends, o.Suggests)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the package names %v, the image installs %v", got, want)
	}
}

func TestVersion(t *testing.T) {
	at := time.Date(2026, 11, 25, 1, 50, 0, 0, time.UTC)
	ordered := []string{"dev", "v0.9.0", "v1.0.0-rc.1", "v1.0.0-rc.2", "v1.0.0", "v1.0.0-4-g19a5718", "v1.0.0-4-g19a5718-dirty", "v1.0.0-11-gabcdef0", "v1.0.1"}
	valid := regexp.MustCompile(`^[0-9][A-Za-z0-9.+~]*$`)
	for i, text := range ordered {
		v := version(text, at)
		if !valid.MatchString(v) {
			t.Errorf("%s: %q is no version of both packagers", text, v)
		}
		if i > 0 {
			output(t, "dpkg", "--compare-versions", version(ordered[i-1], at), "lt", v)
		}
	}
	if got := version("c3a073e-dirty", at); got != "0.0.0+20261125T015000.c3a073e.dirty" {
		t.Errorf("a commit without a tag: %s", got)
	}
}

// stubs are programs of a scratch root. Those that change something record how they were called.
var stubs = map[string]string{
	"systemctl": "echo \"systemctl $*\" >>/calls",
	"groupadd":  "echo \"groupadd $*\" >>/calls; echo drivebay:x:900: >>/etc/group",
	"getent":    "while read -r line; do case $line in \"$2\":*) exit 0 ;; esac; done </etc/group; exit 2",
}

// scratchRoot makes a root for rpm with a shell, the stubs and, if systemd is true, the directory by which
// the scripts recognize systemd.
func scratchRoot(t *testing.T, systemd bool) string {
	t.Helper()
	dir := t.TempDir()
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{sh: "/bin/sh"}
	for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(output(t, "ldd", sh), -1) {
		files[lib] = lib
	}
	put := func(to string, text []byte) {
		name := filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		put(to, text)
	}
	for name, text := range stubs {
		put("/usr/bin/"+name, []byte("#!/bin/sh\n"+text+"\n"))
	}
	put("/etc/group", []byte("root:x:0:\n"))
	put("/dev/null", nil) // a file: the scripts only write to it
	if systemd {
		put("/run/systemd/system/.keep", nil)
	}
	output(t, "rpm", "--root", dir, "--initdb")
	return dir
}

// calls returns what the scripts have called since the last time.
func calls(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "calls")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	os.Remove(name)
	return string(text)
}

// TestRPMScripts has rpm install, upgrade and remove the package in a scratch root: its scripts call
// systemd as they should, keep a changed configuration, and fail nowhere.
func TestRPMScripts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("rpm changes the root for the scripts, which needs root")
	}
	_, one := packages(t)
	dir, _ := built()
	b := build{described: "v1.2.4", arch: "amd64"}
	if err := b.run(filepath.Join(dir, "drivebay"), filepath.Join(dir, "next")); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(dir, "next", "drivebay-1.2.4-1.x86_64.rpm")
	for _, row := range []struct {
		systemd                   bool
		install, upgrade, removal string
	}{
		{true, "groupadd --system drivebay\nsystemctl daemon-reload\nsystemctl --no-reload preset drivebay.service\n",
			"systemctl daemon-reload\nsystemctl daemon-reload\nsystemctl try-restart drivebay.service\n",
			"systemctl --no-reload disable --now drivebay.service\nsystemctl daemon-reload\n"},
		{false, "groupadd --system drivebay\nsystemctl --no-reload preset drivebay.service\n", "", "systemctl --no-reload disable --now drivebay.service\n"},
	} {
		root := scratchRoot(t, row.systemd)
		rpm := func(want string, args ...string) {
			t.Helper()
			out := output(t, append([]string{"rpm", "--root", root, "--nodeps", "--define", "_pkgverify_level none"}, args...)...)
			if got := calls(t, root); got != want || strings.Contains(out, "scriptlet failed") || strings.Contains(out, "warning: %") {
				t.Errorf("systemd %v, rpm %s called\n%swant\n%s%s", row.systemd, args[0], got, want, out)
			}
		}
		rpm(row.install, "--install", "--force-debian", one)
		config := filepath.Join(root, "etc/drivebay/drivebay.yaml")
		if err := os.WriteFile(config, []byte("log: {level: debug}\n"), 0o640); err != nil {
			t.Fatal(err)
		}
		rpm(row.upgrade, "--upgrade", "--force-debian", two)
		if text, err := os.ReadFile(config); err != nil || string(text) != "log: {level: debug}\n" {
			t.Errorf("the configuration after the upgrade: %q, %v", text, err)
		}
		if got := output(t, "rpm", "--root", root, "-q", "drivebay"); got != "drivebay-1.2.4-1.x86_64\n" {
			t.Errorf("installed: %s", got)
		}
		rpm(row.removal, "--erase", "--force-debian", "drivebay")
		for name, want := range map[string]bool{"usr/bin/drivebay": false, "usr/lib/systemd/system/drivebay.service": false, "etc/drivebay/drivebay.yaml.rpmsave": true} {
			if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != want {
				t.Errorf("after the removal, %s: %v", name, err)
			}
		}
	}
}
