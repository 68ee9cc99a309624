package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/emul"
)

// Emulated are drives and enclosures that a program in the guest plays; its
// client changes them and counts what they were asked.
type Emulated struct {
	emul.Client
	m *Machine
}

const emulatorSocket = "/run/emulator.sock"

// Emulate adds SATA disks with any health data, and enclosures with lights, to
// the guest. They go with the test.
func (m *Machine) Emulate(spec emul.Spec) *Emulated {
	m.t.Helper()
	description, err := json.Marshal(spec)
	m.Must(err)
	m.Must(m.Guest.Put(m.t.Context(), "/run/emulator.json", 0o600, bytes.NewReader(description)))
	ready, said := newLine("ready "), &tail{}
	p, err := m.Guest.Start(context.WithoutCancel(m.t.Context()), agent.Command{Argv: []string{m.Program("./hack/lab/emulator"),
		"-spec", "/run/emulator.json", "-control", "unix://" + emulatorSocket}}, agent.Streams{Out: io.MultiWriter(ready, said), Err: said})
	m.Must(err)
	select {
	case <-ready.seen:
	case <-p.Done():
		m.t.Fatalf("the emulator ended: %s", said)
	case <-time.After(time.Minute):
		m.t.Fatalf("the emulator is not ready after a minute: %s", said)
	}
	m.Must(m.Settle(m.t.Context()))
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return m.Guest.Dial(ctx, "unix", emulatorSocket)
	}
	return &Emulated{emul.Client{HTTP: &http.Client{Transport: &http.Transport{DialContext: dial}}}, m}
}

// Set changes a device; the test ends if that fails.
func (e *Emulated) Set(name string, c emul.Change) emul.State {
	e.m.t.Helper()
	s, err := e.Change(e.m.t.Context(), name, c)
	e.m.Must(err)
	return s
}

// State is a device now.
func (e *Emulated) State(name string) emul.State {
	e.m.t.Helper()
	s, err := e.Device(e.m.t.Context(), name)
	e.m.Must(err)
	return s
}

// line waits for a line that begins in a certain way.
type line struct {
	begin string
	rest  string
	seen  chan struct{}
}

func newLine(begin string) *line { return &line{begin: begin, seen: make(chan struct{})} }

func (l *line) Write(b []byte) (int, error) {
	l.rest += string(b)
	for {
		one, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		if strings.HasPrefix(one, l.begin) {
			select {
			case <-l.seen:
			default:
				close(l.seen)
			}
		}
	}
}

// ScsiDebug loads the kernel's own pretended SCSI drives (drivers/scsi/scsi_debug.c)
// with its module parameters and returns their kernel names.
func (m *Machine) ScsiDebug(parameters string) []string {
	m.t.Helper()
	m.Sh("modprobe scsi_debug %s", parameters)
	m.Must(m.Settle(m.t.Context()))
	return strings.Fields(m.Sh("cd /sys/bus/pseudo/drivers/scsi_debug && ls -d adapter*/host*/target*/*/block/* | xargs -n1 basename"))
}

// PredictFailure has a scsi_debug drive announce its own failure: MODE SELECT of
// the informational exceptions control page with its TEST bit (SPC-5 7.5.15).
func (m *Machine) PredictFailure(name string) {
	m.t.Helper()
	// Four bytes of header, then page 1Ch: DEXCPT 1 and TEST 1, method of reporting 2,
	// report once.
	m.Sh(`printf '\0\0\0\0\x1c\x0a\x0c\x02\0\0\0\0\0\0\0\x01' >/tmp/page && sg_raw -s 16 -i /tmp/page /dev/%s 15 10 00 00 10 00 2>&1`, name)
}
