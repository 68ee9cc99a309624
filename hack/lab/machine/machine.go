package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/image"
	"github.com/drivebay/drivebay/hack/lab/qmp"
)

// Machine is a computer that runs.
type Machine struct {
	Guest *agent.Client // runs things inside
	Dir   string        // everything that it has on the host; gone after Close

	img     *image.Image
	spec    Spec
	log     io.Writer
	qemu    *exec.Cmd
	exited  chan struct{} // closed when qemu has ended
	unguard func()        // ends the watch over it
	said    bytes.Buffer  // by qemu, to be read once exited is closed
	control *qmp.Client
	lock    *os.File // held while the folder is in use

	mu     sync.Mutex
	drives map[string]*drive
	taken  map[int]string // PCI slot -> who is in it

	link    *linkEnd        // nil: no cable yet
	mounted map[string]bool // shares
}

// drive is a drive as it is plugged in.
type drive struct {
	Drive
	slots   []int
	devices []device
	plugged bool
	fault   string // block node over the drive's own; "": none
}

// Options are what is the same for all machines of a program.
type Options struct {
	Image *image.Image
	Cache string    // where saved machines are kept
	Log   io.Writer // progress of what takes long
	Cold  bool      // boot it, whatever is saved
}

// restoreTime is how long a saved machine may take to come up; it takes a second
// or two. About one in 300 never answers under load: a processor is halted with
// interrupts allowed while its local APIC holds a timer's and a call's pending
// (QEMU 7.2, `info registers` and `info lapic`), and nothing wakes it any more.
const restoreTime = 30 * time.Second

// bootTime is how long a boot may take: fifteen seconds on a quiet host. A machine
// that boots may fall asleep for good like any other.
const bootTime = 2 * time.Minute

// Start brings up a machine: from a saved one where that is possible, else by
// booting it. It is ready when the kernel shows all its drives.
func Start(ctx context.Context, opt Options, spec Spec) (*Machine, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	if opt.Cold || !spec.restorable() {
		return startTwice(ctx, opt, spec, "", bootTime)
	}
	for again := false; ; again = true {
		saved, err := savedState(ctx, opt, spec)
		if err != nil {
			return nil, err
		}
		m, err := startTwice(ctx, opt, spec, saved, restoreTime)
		if again || ctx.Err() != nil || !errors.Is(err, errEnded) {
			return m, err
		}
		fmt.Fprintf(opt.Log, "lab: the saved machine is of no use, another one is made: %v\n", err)
		os.Remove(saved)
	}
}

func startTwice(ctx context.Context, opt Options, spec Spec, saved string, within time.Duration) (m *Machine, err error) {
	err = twice(ctx, within, opt.Log, func(ctx context.Context) (err error) {
		m, err = start(ctx, opt, spec, saved)
		return err
	})
	return m, err
}

// errEnded: QEMU has ended by itself. QEMU 7.2 crashes now and then when the first network card
// is plugged in (a null pointer in its object model, seen once in some thousand starts); and a
// guest whose udev is not done in time on a busy host powers itself down.
var errEnded = errors.New("the emulator ended")

// twice tries to bring a machine up, and once more when the first try was not over
// in time, or the emulator ended.
func twice(ctx context.Context, within time.Duration, log io.Writer, try func(context.Context) error) error {
	once, cancel := context.WithTimeoutCause(ctx, within, errors.New("not up in time"))
	defer cancel()
	err := try(once)
	again := once.Err() != nil || errors.Is(err, errEnded)
	if err == nil || !again || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(log, "lab: once more, because a machine did not come up: %v\n", err)
	return try(ctx)
}

// start is one try.
func start(ctx context.Context, opt Options, spec Spec, saved string) (*Machine, error) {
	m := &Machine{img: opt.Image, spec: spec, log: opt.Log, drives: map[string]*drive{}, taken: map[int]string{}}
	if err := m.makeDir(); err != nil {
		return nil, err
	}
	if err := m.up(ctx, saved); err != nil {
		err = fmt.Errorf("start the machine: %w%s", err, m.lastWords())
		m.Close()
		return nil, err
	}
	if !opt.Cold { // a machine that is to be saved must not be in the middle of an answer
		m.guard()
	}
	return m, nil
}

// ended is errEnded if QEMU has, or is about to.
func (m *Machine) ended() error {
	if m.exited == nil {
		return nil
	}
	select {
	case <-m.exited:
		return fmt.Errorf("%w: %v", errEnded, m.qemu.ProcessState)
	case <-time.After(time.Second):
		return nil
	}
}

// restorable: QEMU cannot save a machine that has an NVMe controller, and only
// at the start can it put one namespace behind two of them.
func (s Spec) restorable() bool {
	return !slices.ContainsFunc(s.Drives, func(d Drive) bool { return d.Paths > 1 })
}

// up starts QEMU, gets hold of the guest and plugs in what is not there yet.
func (m *Machine) up(ctx context.Context, saved string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, m.ended())
		}
	}()
	if err := m.makeDisks(); err != nil {
		return err
	}
	atStart := func(d Drive) bool { return d.cold() || saved == "" }
	args := append(m.spec.shape(m.img), m.local(atStart)...)
	if saved != "" {
		args = append(args, "-incoming", "exec:cat '"+saved+"'")
	}
	if err := m.spawn(ctx, args); err != nil {
		return err
	}
	if err := m.greet(ctx, saved != ""); err != nil {
		return err
	}
	if err := m.plugLink(ctx); err != nil {
		return err
	}
	var serials []string
	for _, d := range m.spec.Drives {
		serials = append(serials, d.Serial)
		if !atStart(d) {
			if err := m.plug(ctx, m.drives[d.ID]); err != nil {
				return err
			}
		}
	}
	return m.await(ctx, serials)
}

// await waits for the kernel and for udev to have seen the drives. When several
// slots change at once a notification can get lost, as on real boards: looking
// again by hand finds what was missed.
func (m *Machine) await(ctx context.Context, serials []string) error {
	_, err := m.Guest.Drives(ctx, serials, 10*time.Second)
	if err != nil && ctx.Err() == nil {
		if _, err := m.Guest.Shell(ctx, "echo 1 >/sys/bus/pci/rescan; for h in /sys/class/scsi_host/*/scan; do echo '- - -' >$h; done"); err != nil {
			return err
		}
		_, err = m.Guest.Drives(ctx, serials, 20*time.Second)
	}
	if err != nil {
		return err
	}
	return m.Settle(ctx)
}

// Settle waits until udev has nothing left to do. udevd drops the connection of
// who waits for it now and then ("Broken pipe"): then it is asked again.
func (m *Machine) Settle(ctx context.Context) error {
	_, err := m.Guest.Shell(ctx, "for i in 1 2 3 4 5; do udevadm settle -t 30 && exit; sleep 0.1; done; exit 1")
	return err
}

// greet waits until the guest's agent is there and sets the guest's clock.
func (m *Machine) greet(ctx context.Context, restored bool) error {
	control, err := qmp.Connect(ctx, filepath.Join(m.Dir, "qmp"))
	if err != nil {
		return err
	}
	m.control = control
	m.Guest = agent.Connect(filepath.Join(m.Dir, "agent"))
	if restored {
		if err := m.awaitRunning(ctx); err != nil {
			return err
		}
	}
	// The agent answers once it has opened its port; until then this waits.
	if err := m.Guest.SetClock(ctx, time.Now()); err != nil {
		return fmt.Errorf("the guest does not answer: %w", err)
	}
	return nil
}

// awaitRunning waits until the memory is read, and lets the processors go on: the machine was saved while they stood still.
func (m *Machine) awaitRunning(ctx context.Context) error {
	for {
		b, err := m.control.Run(ctx, "query-status", nil)
		if err != nil {
			return err
		}
		var is struct {
			Running bool
			Status  string
		}
		switch err := json.Unmarshal(b, &is); {
		case err != nil:
			return err
		case is.Running:
			return nil
		case is.Status == "paused":
			if _, err := m.control.Run(ctx, "cont", nil); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// spawn starts QEMU. It dies with this process, however this process ends.
func (m *Machine) spawn(ctx context.Context, args []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, socket := range []string{"qmp", "agent"} {
		os.Remove(filepath.Join(m.Dir, socket))
	}
	m.said.Reset()
	m.mounted = map[string]bool{}
	m.qemu = exec.Command("qemu-system-x86_64", args...)
	m.qemu.Stdout, m.qemu.Stderr = &m.said, &m.said
	m.qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	m.exited = make(chan struct{})
	if err := startLocked(m.qemu); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		cmd.Wait()
		close(done)
	}(m.qemu, m.exited)
	return nil
}

// kill ends QEMU as a power cut ends a machine.
func (m *Machine) kill() {
	if m.unguard != nil {
		m.unguard()
	}
	if m.control != nil {
		m.control.Close()
	}
	if m.Guest != nil {
		m.Guest.Close()
	}
	if m.qemu != nil && m.qemu.Process != nil {
		m.qemu.Process.Kill()
		<-m.exited
	}
}

// Close ends the machine and removes what it left.
func (m *Machine) Close() error {
	m.kill()
	m.dropLink()
	err := os.RemoveAll(m.Dir)
	return errors.Join(err, m.lock.Close())
}

// lastWords is what the console and QEMU said before something went wrong.
func (m *Machine) lastWords() string {
	m.kill()
	console, _ := os.ReadFile(filepath.Join(m.Dir, "console"))
	text := ""
	for _, part := range []struct{ who, what string }{{"qemu", m.said.String()}, {"console", string(console)}} {
		if what := strings.TrimSpace(part.what); what != "" {
			text += fmt.Sprintf("\n%s: %s", part.who, what[max(0, len(what)-1500):])
		}
	}
	return text
}

// Log is the guest's kernel log.
func (m *Machine) Log(ctx context.Context) (string, error) { return m.Guest.Output(ctx, "dmesg") }
