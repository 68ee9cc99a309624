package lab

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/agent"
)

// Run compiles the tests of a package and runs them in the guest as they are, in
// the package's own folder. Arguments are those of a test binary, without the
// "test." ("-run", "Root"). Build tags and variables of the environment come first:
// "-tags=root", "NAME=value".
func Run(t *testing.T, m *Machine, pkg string, args ...string) {
	t.Helper()
	opt, err := setup()
	if err != nil {
		t.Fatal(err)
	}
	var build, env []string
	for ; len(args) > 0; args = args[1:] {
		if strings.HasPrefix(args[0], "-tags") {
			build = append(build, args[0])
		} else if !strings.HasPrefix(args[0], "-") {
			env = append(env, args[0])
		} else {
			break
		}
	}
	coverDir := coverDir()
	if coverDir != "" {
		build = append(build, "-cover", "-coverpkg=./...")
	}
	binary, err := compile(t.Context(), opt.Cache, "test", pkg, build)
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"/share/bin/" + filepath.Base(binary), "-test.v=true"}
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			a = "-test." + strings.TrimLeft(a, "-")
		}
		argv = append(argv, a)
	}
	if coverDir != "" {
		argv = append(argv, "-test.gocoverdir="+guestCover)
		m.Sh("mkdir -p " + guestCover)
	}
	m.Must(m.Share(t.Context(), "bin"))
	m.Must(m.Share(t.Context(), "src"))
	said := &verdicts{to: t.Output()}
	cmd := agent.Command{Argv: argv, Env: env, Dir: "/share/src/" + strings.TrimPrefix(pkg, "./")}
	p, err := m.Guest.Start(t.Context(), cmd, agent.Streams{Out: said, Err: said})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%s in the guest: %v", pkg, err)
	}
	if said.passed == 0 {
		t.Errorf("%s in the guest: no test ran", pkg)
	}
	if said.skipped > 0 {
		t.Errorf("%s in the guest: %d tests were skipped: the lab has what they need", pkg, said.skipped)
	}
	if coverDir != "" {
		m.Must(fetchCover(t.Context(), m.Guest, coverDir))
	}
}

const guestCover = "/tmp/cover"

// coverDir is where coverage is wanted, "" if it is not; from the checkout's root.
func coverDir() string {
	dir := os.Getenv("DRIVEBAY_LAB_COVER")
	if root, err := Root(); err == nil && dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return dir
}

// fetchCover copies the coverage that programs left in the guest.
func fetchCover(ctx context.Context, guest *agent.Client, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names, err := guest.Output(ctx, "ls", guestCover)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		b, err := guest.Get(ctx, guestCover+"/"+name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// verdicts passes a test's output on and counts its results.
type verdicts struct {
	to              io.Writer
	rest            string
	passed, skipped int
}

func (v *verdicts) Write(b []byte) (int, error) {
	v.rest += string(b)
	for {
		line, rest, ok := strings.Cut(v.rest, "\n")
		if !ok {
			break
		}
		v.rest = rest
		switch {
		case strings.HasPrefix(line, "--- PASS"):
			v.passed++
		case strings.HasPrefix(line, "--- SKIP"):
			v.skipped++
		}
	}
	return v.to.Write(b)
}
