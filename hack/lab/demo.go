package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// scene is a step of the demonstration: what is done to the hardware, and what
// the guest's people see of it.
type scene struct {
	title string
	do    func(ctx context.Context, m *machine.Machine) error
	show  string
}

func shell(line string) func(context.Context, *machine.Machine) error {
	return func(ctx context.Context, m *machine.Machine) error {
		_, err := m.Guest.Shell(ctx, line)
		return err
	}
}

// The scenes go by serial number: kernel names change from start to start.
var scenes = []scene{
	{"A machine with eight drives and its root disk", nil, "for i in $(seq 100); do drivebay drives | grep -q 'not asked yet' || break; sleep 0.1; done; drivebay drives"},
	{"LABNVME0 sets the critical warning bit for lost reliability in its health log",
		func(ctx context.Context, m *machine.Machine) error {
			return m.SetCriticalWarning(ctx, "nvme0", 4)
		}, "for i in $(seq 150); do drivebay explain LABNVME0 | grep -q BAD && break; sleep 0.1; done; drivebay explain LABNVME0"},
	{"A sector of LABSCSI0 cannot be read any more, and somebody reads it",
		func(ctx context.Context, m *machine.Machine) error {
			if err := m.FailIO(ctx, "scsi0", machine.IOError{Op: "read", Sector: 2048}); err != nil {
				return err
			}
			return shell("dd if=/dev/disk/by-id/wwn-0x5000c500b0000000 of=/dev/null bs=512 skip=2048 count=1 iflag=direct 2>/dev/null; true")(ctx, m)
		}, "for i in $(seq 100); do drivebay explain LABSCSI0 | grep -q SUSPECT && break; sleep 0.1; done; drivebay explain LABSCSI0"},
	{"Somebody pulls LABNVME1", func(ctx context.Context, m *machine.Machine) error { return m.Unplug(ctx, "nvme1") },
		"sleep 0.5; drivebay drives"},
	{"... and puts it back", func(ctx context.Context, m *machine.Machine) error { return m.Replug(ctx, "nvme1") },
		"sleep 0.5; drivebay drives; drivebay events | tail -12"},
}

func demoCommand() *cobra.Command {
	var pause time.Duration
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch drives fail, and what drivebay says of it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDaemon(cmd.Context(), func(m *machine.Machine) error { return playAll(cmd.Context(), m, pause) })
		},
	}
	cmd.Flags().DurationVar(&pause, "pause", 2*time.Second, "time to look between two scenes")
	return cmd
}

func playAll(ctx context.Context, m *machine.Machine, pause time.Duration) error {
	for _, s := range scenes {
		if err := play(ctx, m, s); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func play(ctx context.Context, m *machine.Machine, s scene) error {
	fmt.Printf("\n### %s\n", s.title)
	if s.do != nil {
		if err := s.do(ctx, m); err != nil {
			return err
		}
	}
	p, err := m.Guest.Start(ctx, agent.Command{Argv: []string{"/bin/bash", "-c", s.show}}, agent.Streams{Out: os.Stdout, Err: os.Stderr})
	if err != nil {
		return err
	}
	return p.Wait()
}
