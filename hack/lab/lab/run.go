package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/agent"
)

// Run compiles the tests of a package and runs them in the guest as they are, in
// the package's own folder. Arguments are those of a test binary, without the
// "test." ("-run", "Root"). Build tags come first: "-tags=root".
func Run(t *testing.T, m *Machine, pkg string, args ...string) {
	t.Helper()
	opt, err := setup()
	if err != nil {
		t.Fatal(err)
	}
	var build []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-tags") {
		build, args = append(build, args[0]), args[1:]
	}
	coverDir := os.Getenv("DRIVEBAY_LAB_COVER")
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
	cmd := agent.Command{Argv: argv, Dir: "/share/src/" + strings.TrimPrefix(pkg, "./"), Env: []string{"LAB_QMP=/dev/virtio-ports/lab.qmp"}}
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
		m.FetchCover(coverDir)
	}
}

const guestCover = "/tmp/cover"

// FetchCover copies the coverage that programs left in the guest.
func (m *Machine) FetchCover(dir string) {
	m.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	for _, name := range strings.Fields(m.Sh("ls " + guestCover)) {
		b, err := m.Guest.Get(m.t.Context(), guestCover+"/"+name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
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

// Exec runs a binary of this machine in the guest: what `go test -exec` asks
// for. Files that a test binary writes for the go command are brought home.
func Exec(ctx context.Context, guest *agent.Client, dir, binary string, args []string, streams agent.Streams) error {
	f, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	inside := "/tmp/lab-exec/" + filepath.Base(binary)
	if err := guest.Put(ctx, inside, 0o755, f); err != nil {
		return err
	}
	argv, results := []string{inside}, map[string]string{}
	for i, a := range args {
		flag, value, ok := strings.Cut(a, "=")
		switch flag {
		case "-test.coverprofile", "-test.testlogfile", "-test.cpuprofile", "-test.memprofile", "-test.trace":
			if ok && value != "" {
				results[value] = fmt.Sprintf("/tmp/lab-exec/result%d", i)
				a = flag + "=" + results[value]
			}
		}
		argv = append(argv, a)
	}
	p, err := guest.Start(ctx, agent.Command{Argv: argv, Dir: dir}, streams)
	if err != nil {
		return err
	}
	err = p.Wait()
	for here, there := range results {
		b, err2 := guest.Get(ctx, there)
		if errors.Is(err2, os.ErrNotExist) {
			continue // it ended before it wrote one
		}
		err = errors.Join(err, err2)
		if err2 == nil {
			err = errors.Join(err, os.WriteFile(here, b, 0o644))
		}
	}
	return err
}
