package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/image"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// showcase is the machine of the shell and of go test -exec: two of each kind
// that can be pulled.
func showcase() machine.Spec {
	var s machine.Spec
	for i := range 2 {
		n := fmt.Sprint(i)
		s.Drives = append(s.Drives,
			machine.Drive{ID: "nvme" + n, Kind: machine.NVMe, Serial: "LABNVME" + n, Size: 2 << 30},
			machine.Drive{ID: "sata" + n, Kind: machine.SATA, Serial: "LABSATA" + n, Model: "LAB HDD", Firmware: "1.0", WWN: 0x5000c500a0000000 + uint64(i), RPM: 7200, Size: 2 << 30},
			machine.Drive{ID: "scsi" + n, Kind: machine.SCSI, Serial: "LABSCSI" + n, Vendor: "LABVEND", Model: "LAB SCSI", WWN: 0x5000c500b0000000 + uint64(i), RPM: 10000, Size: 2 << 30})
	}
	s.Drives = append(s.Drives,
		machine.Drive{ID: "usb0", Kind: machine.USB, Serial: "LABUSB0"},
		machine.Drive{ID: "virtio0", Kind: machine.Virtio, Serial: "LABVIRTIO0"})
	return s
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Make the image and the saved machine, so that the next start is quick", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			m, err := lab.Up(cmd.Context(), showcase())
			if err != nil {
				return err
			}
			defer m.Close()
			fmt.Printf("ready after %.1f s\n", time.Since(began).Seconds())
			return nil
		},
	}
}

func cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use: "clean", Short: "Remove what the lab keeps in its cache", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := image.Cache()
			if err != nil {
				return err
			}
			for _, what := range []string{"base-*", "state-*", "bin", "*.lock"} {
				names, err := filepath.Glob(filepath.Join(dir, what))
				if err != nil {
					return err
				}
				for _, name := range names {
					if err := os.RemoveAll(name); err != nil {
						return err
					}
				}
			}
			fmt.Println("removed what was in", dir)
			return nil
		},
	}
}

func execCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec BINARY [ARGUMENT]...", Short: "Run a binary of this machine in a fresh guest",
		Long: `Runs a binary of this machine in a fresh guest with two NVMe, two SATA, two SCSI drives, one USB and one
virtio drive, in the same folder of the source tree. Its exit status becomes that of this command.
Made for: go test -exec 'go run github.com/drivebay/drivebay/hack/lab exec' ./...`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := lab.Up(cmd.Context(), showcase())
			if err != nil {
				return err
			}
			defer m.Close()
			dir, err := guestDir()
			if err != nil {
				return err
			}
			if err := m.Share(cmd.Context(), "src"); err != nil {
				return err
			}
			err = lab.Exec(cmd.Context(), m.Guest, dir, args[0], args[1:], agent.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
			if err != nil {
				if name, _, logErr := lab.KeepLogs(m, "exec-"+filepath.Base(args[0])); logErr == nil {
					fmt.Fprintln(os.Stderr, "lab: kernel log of the guest:", name)
				}
			}
			return err
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// guestDir is this folder as the guest sees it; outside of the source tree, /tmp.
func guestDir() (string, error) {
	root, err := lab.Root()
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, here)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "/tmp", nil
	}
	return filepath.Join("/share/src", rel), nil
}

// withDaemon does something with the machine of the showcase and our daemon in it.
func withDaemon(ctx context.Context, do func(*machine.Machine) error) error {
	m, err := lab.Up(ctx, showcase())
	if err != nil {
		return err
	}
	defer m.Close()
	if err := startDaemon(ctx, m); err != nil {
		return err
	}
	return do(m)
}

// startDaemon starts our daemon in a guest and waits until it answers.
func startDaemon(ctx context.Context, m *machine.Machine) error {
	log, err := os.Create(filepath.Join(m.Dir, "daemon.log"))
	if err != nil {
		return err
	}
	if _, err := lab.StartDaemon(ctx, m, "poll: {evidence: 10s}\n", log); err != nil {
		return err
	}
	if _, err := m.Guest.Shell(ctx, "for i in $(seq 300); do [ -S /run/drivebay/drivebay.sock ] && exit 0; sleep 0.1; done; exit 1"); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the daemon does not come up:\n%s", said)
	}
	return nil
}
