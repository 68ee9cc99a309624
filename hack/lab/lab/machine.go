package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/image"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// Machine is a machine that belongs to a test: what goes wrong with it fails the
// test, and it goes when the test ends.
type Machine struct {
	*machine.Machine
	t testing.TB
}

// setup is made once for all tests of a program.
var setup = sync.OnceValues(func() (machine.Options, error) { return Setup(context.Background(), os.Stderr) })

// startTime bounds how long a machine may take to come up; it is generous
// because the first one of its shape is booted and saved, perhaps by another program,
// and each of that is tried twice.
const startTime = 6 * time.Minute

// until is the variable with the time, in seconds since 1970, from which no test gets a machine any more: a slow
// machine tries what it can in the time that it has, and the tier names the others.
const until = "DRIVEBAY_LAB_UNTIL"

func late(end string, now time.Time) bool {
	s, err := strconv.ParseInt(end, 10, 64)
	return err == nil && now.Unix() >= s
}

// Start brings up a machine for a test and those below it. Our compiled programs
// and the source tree come into it when something asks for them, as /share/bin and
// /share/src.
func Start(t testing.TB, spec machine.Spec) *Machine {
	t.Helper()
	if late(os.Getenv(until), time.Now()) {
		t.Skipf("not begun: %s has passed", until)
	}
	m, err := Up(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out := &Machine{m, t}
	t.Cleanup(func() {
		if t.Failed() {
			out.keepLogs()
		}
		if err := m.Close(); err != nil {
			t.Errorf("remove the machine: %v", err)
		}
	})
	return out
}

// Up is Start without a test.
func Up(ctx context.Context, spec machine.Spec) (*machine.Machine, error) {
	opt, err := setup()
	if err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	spec.Shares = map[string]string{"bin": filepath.Join(opt.Cache, "bin"), "src": root}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return machine.Start(ctx, opt, spec)
}

// For is the same machine in the hands of a test below the one that started it.
func (m *Machine) For(t testing.TB) *Machine { return &Machine{m.Machine, t} }

// Sh runs a line of shell in the guest; the test ends if it fails.
func (m *Machine) Sh(format string, args ...any) string {
	m.t.Helper()
	line := fmt.Sprintf(format, args...)
	out, err := m.Guest.Output(m.t.Context(), "/bin/bash", "-e", "-c", line)
	if err != nil {
		m.t.Fatalf("in the guest: %s\n%v\n%s", line, err, out)
	}
	return strings.TrimSpace(out)
}

// Systemd replaces PID 1 of the guest by systemd and waits until its units are started. Without an
// id, systemd configures a new machine. Units of the image that read drives or wait for a terminal do
// not start.
func (m *Machine) Systemd() {
	m.t.Helper()
	m.Sh(`systemd-machine-id-setup
		mkdir -p /run/systemd/system
		for unit in smartmontools mdmonitor drbd openipmi serial-getty@ttyS0; do ln -s /dev/null /run/systemd/system/$unit.service; done
		ln -s /dev/null /run/systemd/system/getty.target
		udevadm control --exit # systemd starts its own
		kill -USR1 1
		for i in $(seq 600); do
			case $(systemctl is-system-running 2>/dev/null || true) in
			running) exit 0 ;;
			degraded) systemctl --failed; exit 1 ;;
			esac
			sleep 0.2
		done
		systemctl list-jobs; exit 1`)
}

// Output runs a line of shell and returns what it wrote, however it ended:
// smartctl's exit status is an opinion.
func (m *Machine) Output(line string) string {
	m.t.Helper()
	out, err := m.Guest.Shell(m.t.Context(), line)
	if _, ended := errors.AsType[*agent.ExitError](err); err != nil && !ended {
		m.t.Fatal(err)
	}
	return out
}

// Must ends the test if a change of the hardware failed.
func (m *Machine) Must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// Name is the kernel name that a drive has now.
func (m *Machine) Name(serial string) string {
	m.t.Helper()
	names, err := m.Guest.Drives(m.t.Context(), []string{serial}, 10*time.Second)
	if err != nil {
		m.t.Fatal(err)
	}
	return names[serial]
}

// Now is the guest's clock.
func (m *Machine) Now() time.Time {
	m.t.Helper()
	now, err := m.Clock(m.t.Context())
	m.Must(err)
	return now
}

// Program compiles one of our programs and says where the guest finds it.
func (m *Machine) Program(pkg string, flags ...string) string {
	m.t.Helper()
	file, err := install(m.t.Context(), m.Machine, pkg, flags...)
	m.Must(err)
	return file
}

// Tests compiles the tests of a package and says where the guest finds them, for who
// runs them in another way than Run.
func (m *Machine) Tests(pkg string, flags ...string) string {
	m.t.Helper()
	opt, err := setup()
	m.Must(err)
	file, err := compile(m.t.Context(), opt.Cache, "test", pkg, flags)
	m.Must(err)
	return "/share/bin/" + filepath.Base(file)
}

func install(ctx context.Context, m *machine.Machine, pkg string, flags ...string) (string, error) {
	opt, err := setup()
	if err != nil {
		return "", err
	}
	file, err := Build(ctx, opt.Cache, pkg, flags...)
	if err != nil {
		return "", err
	}
	return "/share/bin/" + filepath.Base(file), m.Share(ctx, "bin")
}

// Forward makes a unix socket of the guest reachable on the host and returns
// where: what connects there speaks to the guest.
func (m *Machine) Forward(socket string) string {
	m.t.Helper()
	local := filepath.Join(m.Dir, image.Key(socket, time.Now().String())+".sock")
	l, err := net.Listen("unix", local)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { l.Close() })
	go forward(l, m.Guest, socket)
	return local
}

func forward(l net.Listener, guest *agent.Client, socket string) {
	for {
		here, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer here.Close()
			there, err := guest.Dial(context.Background(), "unix", socket)
			if err != nil {
				return
			}
			defer there.Close()
			agent.Join(here, there)
		}()
	}
}

// keepLogs writes what the guest's kernel and console said beside the test's
// name, for whoever reads the failure.
func (m *Machine) keepLogs() {
	name, kernel, err := KeepLogs(m.Machine, m.t.Name())
	if err != nil {
		m.t.Logf("logs of the guest: %v", err)
		return
	}
	lines := strings.Split(strings.TrimSpace(kernel), "\n")
	m.t.Logf("kernel log of the guest, all of it in %s; its end:\n%s", name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
}

// KeepLogs writes what a guest's kernel and console said to .cache/lab/WHAT.log of
// the checkout.
func KeepLogs(m *machine.Machine, what string) (name, kernel string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if kernel, err = m.Log(ctx); err != nil {
		kernel = fmt.Sprintf("the guest does not answer any more: %v\n", err)
	}
	console, err := os.ReadFile(filepath.Join(m.Dir, "console"))
	if err != nil {
		return "", "", err
	}
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	dir := filepath.Join(root, ".cache", "lab")
	name = filepath.Join(dir, strings.ReplaceAll(what, "/", "_")+".log")
	text := bytes.Join([][]byte{[]byte("=== kernel log\n"), []byte(kernel), []byte("=== console\n"), console}, nil)
	return name, kernel, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(name, text, 0o644))
}
