package deploy

import (
	"bufio"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// instruction is one line of the Dockerfile, continuations joined.
type instruction struct {
	stage      string // name of the stage it is in
	name, args string
}

func dockerfile(t *testing.T) (out []instruction) {
	t.Helper()
	known := []string{"FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENTRYPOINT", "CMD"}
	b, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	stage := ""
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if !slices.Contains(known, name) {
			t.Fatalf("what is %q in the Dockerfile?", line)
		}
		if name == "FROM" {
			_, stage, _ = strings.Cut(args, " AS ")
		}
		out = append(out, instruction{stage, name, args})
	}
	return out
}

// wanted is deploy/image.files: where a path of the image comes from.
func wanted(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("image.files")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 2 && f[0] != "#" {
			out[f[0]] = f[1]
		} else if len(f) > 0 && f[0] != "#" {
			t.Errorf("image.files: %q", lines.Text())
		}
	}
	return out
}

// ours reports whether a source is in this repository or built from it. The others are Debian
// packages, whose names are in lower case and have no slash.
func ours(source string) bool {
	return source == "build" || strings.Contains(source, "/") || strings.ToLower(source) != source
}

// packages is what the final stage installs.
func packages(t *testing.T) (out []string) {
	t.Helper()
	for _, in := range dockerfile(t) {
		_, list, found := strings.Cut(in.args, "apt-get install")
		if in.name != "RUN" || in.stage != "" || !found {
			continue
		}
		list, _, _ = strings.Cut(list, "&&")
		for _, word := range strings.Fields(list) {
			if !strings.HasPrefix(word, "-") {
				out = append(out, word)
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("the Dockerfile installs nothing")
	}
	return out
}

// TestImageCopies finds every source of a COPY, and every file of ours in the
// list among their destinations.
func TestImageCopies(t *testing.T) {
	copied := map[string]string{}
	for _, in := range dockerfile(t) {
		if in.name != "COPY" {
			continue
		}
		words := strings.Fields(in.args)
		from, isFrom := strings.CutPrefix(words[0], "--from=")
		if isFrom {
			words = words[1:]
		}
		to := words[len(words)-1]
		for _, source := range words[:len(words)-1] {
			target := to
			if strings.HasSuffix(to, "/") {
				target = to + path.Base(source)
			}
			if isFrom {
				copied[target] = from
				if !built(t, from, source) {
					t.Errorf("COPY --from=%s %s: no RUN of that stage writes it", from, source)
				}
				continue
			}
			copied[target] = source
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("COPY %s: %v", source, err)
			}
			if ignored(t, source) {
				t.Errorf("COPY %s: Dockerfile.dockerignore leaves it out", source)
			}
		}
	}
	for file, source := range wanted(t) {
		if ours(source) && copied[file] != source {
			t.Errorf("%s should come from %s and comes from %q", file, source, copied[file])
		}
	}
	for file, source := range copied {
		if strings.HasPrefix(file, "/") && wanted(t)[file] != source {
			t.Errorf("%s is copied and not in image.files", file)
		}
	}
}

func built(t *testing.T, stage, file string) bool {
	return slices.ContainsFunc(dockerfile(t), func(in instruction) bool {
		return in.name == "RUN" && in.stage == stage && strings.Contains(in.args, "-o "+file+" ")
	})
}

func ignored(t *testing.T, source string) bool {
	b, err := os.ReadFile(filepath.Join(root, "Dockerfile.dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	for pattern := range strings.FieldsSeq(string(b)) {
		if source == pattern || strings.HasPrefix(source, pattern+"/") {
			return true
		}
	}
	return false
}

// TestImageBinary runs the build command of the Dockerfile and looks at what
// comes out: a program that needs no loader and no library runs on any base.
func TestImageBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	var build string
	for _, in := range dockerfile(t) {
		if in.name == "RUN" && strings.Contains(in.args, "go build") {
			build = in.args
		}
	}
	out := filepath.Join(t.TempDir(), "drivebay")
	cmd := exec.Command("sh", "-ec", regexp.MustCompile(`-o \S+`).ReplaceAllString(build, "-o "+out))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "VERSION=v0.0.0-image", "GOFLAGS=-buildvcs=false")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, b)
	}
	file, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary asks for a loader: it is not static")
		}
	}
	if libs, err := file.ImportedLibraries(); len(libs) > 0 || (err != nil && !errors.Is(err, fs.ErrNotExist)) {
		t.Errorf("the binary asks for libraries: %v %v", libs, err)
	}
	if b, err := exec.Command(out, "version").CombinedOutput(); err != nil || !strings.Contains(string(b), "v0.0.0-image") {
		t.Errorf("drivebay version: %v\n%s", err, b)
	}
}

// TestImageGoVersion: the builder is at least what go.mod asks for.
func TestImageGoVersion(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	for _, in := range dockerfile(t) {
		if in.name == "FROM" && in.stage == "build" && !strings.HasPrefix(in.args, "golang:"+string(want[1])+"-") {
			t.Errorf("FROM %s, and go.mod asks for Go %s", in.args, want[1])
		}
	}
}

// TestImagePackages: every tool of the list comes with a package that is
// installed, every package that is installed is there for a tool, and, where apt
// and dpkg are, the packages exist and hold the tools.
func TestImagePackages(t *testing.T) {
	installed := packages(t)
	used := map[string]bool{}
	for file, source := range wanted(t) {
		if ours(source) {
			continue
		}
		used[source] = true
		if !slices.Contains(installed, source) {
			t.Errorf("%s comes with %s, which the Dockerfile does not install", file, source)
		}
		if list, err := exec.Command("dpkg", "-L", source).Output(); err != nil {
			t.Logf("%s: %s is not installed here: its files were not looked at", file, source)
		} else if !slices.Contains(strings.Split(string(list), "\n"), file) {
			t.Errorf("%s is not in package %s", file, source)
		}
	}
	for _, p := range installed {
		if !used[p] {
			t.Errorf("%s is installed and for no tool of image.files", p)
		}
	}
	if !slices.IsSorted(installed) {
		t.Errorf("packages out of order: %v", installed)
	}
	testCandidates(t, installed)
}

// testCandidates asks apt for the packages; Debian only, for names differ elsewhere.
func testCandidates(t *testing.T, names []string) {
	t.Helper()
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !strings.Contains(string(release), "VERSION_CODENAME=bookworm") {
		t.Log("this is not the image's Debian: apt was not asked")
		return
	}
	out, err := exec.Command("apt-cache", append([]string{"policy"}, names...)...).Output() // once: each call reads all lists
	if err != nil {
		t.Logf("apt-cache: %v", err)
		return
	}
	candidates, p := map[string]string{}, ""
	for line := range strings.Lines(string(out)) {
		if line[0] != ' ' {
			p = strings.TrimSuffix(line, ":\n")
		} else if version, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); ok {
			candidates[p] = version
		}
	}
	for _, p := range names {
		if v := candidates[p]; v == "" || v == "(none)" {
			t.Errorf("apt knows no package %s", p)
		}
	}
}
