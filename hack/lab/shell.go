package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

const welcome = `
This is a machine with %d drives and the drivebay daemon; its polls come every 10 seconds. Try:
  drivebay drives                 drivebay explain /dev/nvme0n1
  drivebay events --follow        smartctl -x /dev/sda
Break something:
%s
"exit" ends the machine and everything that was written to its drives.

`

func shellCommand() *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "A shell in a machine with drives of every kind and our daemon", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return withDaemon(ctx, func(m *machine.Machine) error {
				if err := offerHands(ctx, m); err != nil {
					return err
				}
				fmt.Printf(welcome, len(showcase().Drives), strings.TrimRight(usage(), "\n"))
				return interact(ctx, m.Guest)
			})
		},
	}
}

// interact is a shell of the guest on our own terminal.
func interact(ctx context.Context, guest *agent.Client) error {
	in := int(os.Stdin.Fd())
	old, err := unix.IoctlGetTermios(in, unix.TCGETS)
	cmd := agent.Command{Argv: []string{"/bin/bash", "-l"}, Env: []string{"TERM=" + os.Getenv("TERM"), `PS1=lab:\w# `}, Dir: "/root"}
	if err != nil { // no terminal: a script
		p, err := guest.Start(ctx, agent.Command{Argv: []string{"/bin/bash"}, Dir: "/root"}, agent.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		if err != nil {
			return err
		}
		return p.Wait()
	}
	size := windowSize(in)
	cmd.Terminal = &size
	raw := *old
	// cfmakeraw(3): every key goes to the guest as it is.
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	if err := unix.IoctlSetTermios(in, unix.TCSETS, &raw); err != nil {
		return err
	}
	defer unix.IoctlSetTermios(in, unix.TCSETS, old)
	p, err := guest.Start(ctx, cmd, agent.Streams{In: os.Stdin, Out: os.Stdout})
	if err != nil {
		return err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		select {
		case <-resized:
			p.Resize(ctx, windowSize(in))
		case <-p.Done():
			return p.Wait()
		}
	}
}

func windowSize(fd int) agent.Window {
	w, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || w.Row == 0 {
		return agent.Window{Rows: 24, Cols: 80}
	}
	return agent.Window{Rows: w.Row, Cols: w.Col}
}
