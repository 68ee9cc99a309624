package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// verbs are what can be done to a machine's hardware from its shell.
var verbs = map[string]struct {
	what string
	do   func(ctx context.Context, m *machine.Machine, drive string) error
}{
	"pull": {"pull the drive", func(ctx context.Context, m *machine.Machine, d string) error { return m.Unplug(ctx, d) }},
	"put":  {"put it back", func(ctx context.Context, m *machine.Machine, d string) error { return m.Replug(ctx, d) }},
	"fail-reads": {"every read ends in an error", func(ctx context.Context, m *machine.Machine, d string) error {
		return m.FailIO(ctx, d, machine.IOError{Op: "read", Sector: machine.Everywhere})
	}},
	"fail-writes": {"every write ends in an error", func(ctx context.Context, m *machine.Machine, d string) error {
		return m.FailIO(ctx, d, machine.IOError{Op: "write", Sector: machine.Everywhere})
	}},
	"hang": {"no read or write comes back (scsi)", func(ctx context.Context, m *machine.Machine, d string) error { return m.Hang(ctx, d) }},
	"slow": {"five requests a second", func(ctx context.Context, m *machine.Machine, d string) error {
		return m.Slow(ctx, d, machine.Limit{IOPS: 5})
	}},
	"heal": {"end what began with fail, hang or slow", func(ctx context.Context, m *machine.Machine, d string) error { return m.Heal(ctx, d) }},
	"warn": {"set the critical warning \"reliability\" (nvme)", func(ctx context.Context, m *machine.Machine, d string) error {
		return m.SetCriticalWarning(ctx, d, 4)
	}},
	"unwarn": {"take it back", func(ctx context.Context, m *machine.Machine, d string) error {
		return m.SetCriticalWarning(ctx, d, 0)
	}},
}

// usage lists the verbs.
func usage() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		fmt.Fprintf(&b, "  lab %-12s DRIVE   %s\n", name, verbs[name].what)
	}
	var drives []string
	for _, d := range showcase().Drives {
		drives = append(drives, d.ID)
	}
	fmt.Fprintf(&b, "DRIVE is one of %s\n", strings.Join(drives, " "))
	return b.String()
}

// The command "lab" of the guest: it hands its words to us through one pipe and
// shows what comes back through the other.
const handsScript = `#!/bin/bash
exec 9>/run/lab.lock; flock 9
echo "$*" >/run/lab.words
cat /run/lab.answer
`

// offerHands gives people in the guest a way to reach the hardware under it.
func offerHands(ctx context.Context, m *machine.Machine) error {
	if err := m.Guest.Put(ctx, "/usr/local/bin/lab", 0o755, strings.NewReader(handsScript)); err != nil {
		return err
	}
	if _, err := m.Guest.Shell(ctx, "mkfifo -m 600 /run/lab.words /run/lab.answer"); err != nil {
		return err
	}
	words, out := io.Pipe()
	_, err := m.Guest.Start(ctx, agent.Command{Argv: []string{"/bin/bash", "-c", "while :; do cat /run/lab.words; done"}}, agent.Streams{Out: out})
	if err != nil {
		return err
	}
	go func() {
		for lines := bufio.NewScanner(words); lines.Scan(); {
			answer := obey(ctx, m, strings.Fields(lines.Text()))
			if m.Guest.Put(ctx, "/run/lab.answer", 0o600, strings.NewReader(answer+"\n")) != nil {
				return
			}
		}
	}()
	return nil
}

func obey(ctx context.Context, m *machine.Machine, words []string) string {
	if len(words) != 2 {
		return strings.TrimSpace(usage())
	}
	verb, ok := verbs[words[0]]
	if !ok {
		return strings.TrimSpace(usage())
	}
	if err := verb.do(ctx, m, words[1]); err != nil {
		return err.Error()
	}
	return "done"
}
