package lab

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/api"
)

// Daemon is drivebay serve in the guest; its client's calls go to it.
type Daemon struct {
	*api.Client
	m       *Machine
	process *agent.Process
	log     *tail
}

// The daemon's files in the guest.
const (
	daemonSocket = "/run/drivebay/drivebay.sock"
	daemonConfig = "/etc/drivebay.yaml"
	DaemonState  = "/var/lib/drivebay"
)

// Daemon starts our daemon with a configuration and waits until it has looked at
// all drives. It ends with the test.
func (m *Machine) Daemon(config string) *Daemon {
	m.t.Helper()
	d := &Daemon{m: m, log: &tail{}}
	var err error
	// It outlives the test's context: it is asked to end after that, politely.
	d.process, err = StartDaemon(context.WithoutCancel(m.t.Context()), m.Machine, config, d.log)
	m.Must(err)
	began := m.Now()
	d.Client = api.Dial("unix://" + m.Forward(daemonSocket))
	m.t.Cleanup(func() {
		d.Close()
		if m.t.Failed() {
			m.t.Logf("log of the daemon, its end:\n%s", d.log)
		}
		d.Stop()
	})
	d.Until("every drive was looked at", time.Minute, func(s *drivebay.Snapshot) error {
		if !s.Complete || len(s.Drives) == 0 {
			return fmt.Errorf("not listed: %v", s.Problems)
		}
		for _, x := range s.Drives {
			if x.Status == drivebay.StatusOnline && (x.Evidence == nil || x.Evidence.At.Before(began)) {
				return fmt.Errorf("%s (%s) was not looked at yet", x.Name, x.ID)
			}
		}
		return nil
	})
	return d
}

// StartDaemon puts our daemon into a guest, as /usr/local/bin/drivebay, and starts
// it with a configuration. It ends when ctx does.
func StartDaemon(ctx context.Context, m *machine.Machine, config string, log io.Writer) (*agent.Process, error) {
	var build, env []string
	if coverDir() != "" {
		build, env = []string{"-cover", "-coverpkg=./..."}, []string{"GOCOVERDIR=" + guestCover}
	}
	program, err := install(ctx, m, "./cmd/drivebay", build...)
	if err != nil {
		return nil, err
	}
	if err := m.Guest.Put(ctx, daemonConfig, 0o644, strings.NewReader(config)); err != nil {
		return nil, err
	}
	if _, err := m.Guest.Shell(ctx, "mkdir -p "+guestCover+"; ln -sf "+program+" /usr/local/bin/drivebay"); err != nil {
		return nil, err
	}
	return m.Guest.Start(ctx, agent.Command{Argv: []string{"drivebay", "serve", "--config", daemonConfig}, Env: env}, agent.Streams{Out: log, Err: log})
}

// Stop ends the daemon as an init system does, and takes its coverage home.
func (d *Daemon) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	select {
	case <-d.process.Done():
		return
	default:
	}
	if err := d.process.Signal(ctx, syscall.SIGTERM); err != nil {
		return // the machine is gone
	}
	if err := d.process.Wait(); err != nil {
		d.m.t.Errorf("the daemon ended badly: %v\n%s", err, d.log)
	}
	if dir := coverDir(); dir != "" {
		if err := fetchCover(ctx, d.m.Guest, dir); err != nil {
			d.m.t.Errorf("coverage of the daemon: %v", err)
		}
	}
}

// PID is the daemon's in the guest.
func (d *Daemon) PID() int { return d.process.PID }

// Log is what the daemon wrote.
func (d *Daemon) Log() string { return d.log.String() }

// Until waits for a snapshot that satisfies ok and returns how long that took;
// what ok said last is the reason of the failure.
func (d *Daemon) Until(what string, within time.Duration, ok func(*drivebay.Snapshot) error) (*drivebay.Snapshot, time.Duration) {
	d.m.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(d.m.t.Context(), within)
	defer cancel()
	var last error
	for {
		s, err := d.Snapshot(ctx)
		if err == nil {
			if err = ok(s); err == nil {
				return s, time.Since(began)
			}
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			d.m.t.Fatalf("not within %v: %s: %v", within, what, last)
		case <-d.process.Done():
			d.m.t.Fatalf("the daemon ended while we waited: %s\n%s", what, d.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// UntilDrive is Until about the drive with a serial number.
func (d *Daemon) UntilDrive(serial, what string, within time.Duration, ok func(*drivebay.Drive) error) (*drivebay.Drive, time.Duration) {
	d.m.t.Helper()
	var found *drivebay.Drive
	_, took := d.Until(serial+": "+what, within, func(s *drivebay.Snapshot) error {
		for i := range s.Drives {
			if s.Drives[i].Serial == serial {
				found = &s.Drives[i]
				return ok(found)
			}
		}
		return fmt.Errorf("no drive has serial number %s", serial)
	})
	return found, took
}

// BySerial finds a drive now.
func (d *Daemon) BySerial(serial string) *drivebay.Drive {
	d.m.t.Helper()
	x, _ := d.UntilDrive(serial, "is there", 5*time.Second, func(*drivebay.Drive) error { return nil })
	return x
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailSize; over > tailSize {
		t.text = append([]byte(nil), t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// For is the same daemon in the hands of a test below the one that started it.
func (d *Daemon) For(t testing.TB) *Daemon {
	out := *d
	out.m = d.m.For(t)
	return &out
}
