package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/qmp"
)

// A guest that is asked for a sign of life every few seconds answers within one, on
// a busy host within ten. One that does not is not slow but asleep for good: QEMU
// loses an interrupt of a halted processor now and then (see restoreTime). It may be
// one of two: the guest then answers, and what was at work on that one never ends.
const (
	signEvery = 5 * time.Second
	signTime  = 20 * time.Second
	wakeTime  = 2 * time.Minute
)

// nudges are what may wake a guest, the gentlest first: its processors are looked
// at anew, then interrupted in a way that cannot be put off. Linux tells of that in
// its log and goes on (arch/x86/kernel/nmi.c, unknown_nmi_error).
var nudges = [][]string{{"stop", "cont"}, {"inject-nmi"}}

// watch wakes the guest when it does not answer any more.
func (m *Machine) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.exited:
			return
		case <-time.After(signEvery):
		}
		if err := alive(ctx, m.Guest); err != nil && ctx.Err() == nil {
			fmt.Fprintf(m.log, "lab: a guest gives no sign of life: %v\n%s", err, registers(ctx, m.control))
			wake(ctx, m.Guest, m.control, m.qemu, m.log)
		}
	}
}

// wake nudges a guest until it answers. When nothing helps the machine is switched
// off, so that whoever waits for it learns why.
func wake(ctx context.Context, guest *agent.Client, control *qmp.Client, qemu *exec.Cmd, log io.Writer) {
	off := time.AfterFunc(wakeTime, func() {
		fmt.Fprintln(log, "lab: nothing wakes it: the machine is switched off")
		qemu.Process.Kill()
	})
	defer off.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		nudge := nudges[i%len(nudges)]
		for _, command := range nudge {
			if _, err := run(ctx, control, command, nil); err != nil {
				return // QEMU itself does not answer
			}
		}
		err := alive(ctx, guest)
		fmt.Fprintf(log, "lab: nudged by %s, it says: %v\n", strings.Join(nudge, ", "), answer(err))
		if err == nil {
			return
		}
	}
}

func answer(err error) string {
	if err != nil {
		return err.Error()
	}
	return "awake"
}

func alive(ctx context.Context, guest *agent.Client) error {
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	return guest.Alive(ctx)
}

// telling are the registers that say whether a processor stands still, and what for.
var telling = regexp.MustCompile(`(?m)^(CPU#|RIP=|dumping|Timer|ISR|IRR).*\n`)

// registers are what the processors of a machine do, for whoever looks for the cause.
func registers(ctx context.Context, control *qmp.Client) string {
	text := ""
	for _, command := range []string{"info registers -a", "info lapic 0", "info lapic 1"} {
		b, err := run(ctx, control, "human-monitor-command", map[string]any{"command-line": command})
		if err != nil {
			return text + err.Error() + "\n"
		}
		var part string
		if json.Unmarshal(b, &part) == nil {
			text += strings.Join(telling.FindAllString(part, -1), "")
		}
	}
	return text
}

func run(ctx context.Context, control *qmp.Client, command string, args any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	return control.Run(ctx, command, args)
}

// guard has the machine watched for as long as it runs.
func (m *Machine) guard() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.watch(ctx) }()
	m.unguard = func() { cancel(); <-done }
}

// Pause stops the processors of the machine, as a host does that has no time for it:
// it goes on when it is missed (see watch).
func (m *Machine) Pause(ctx context.Context) error {
	_, err := m.control.Run(ctx, "stop", nil)
	return err
}
