// Command rack runs drivebay with drives to try it on. As root these are the spare
// drives of this machine, or, if it has none, loop devices with real partitions,
// filesystems and mounts. Without root they are a simulated rack.
//
//	go run ./hack/rack [-bays N] [-size BYTES] [-dir DIR] PROGRAM
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/config"
)

func main() {
	bays := flag.Int("bays", 6, "how many loop devices")
	size := flag.Int64("size", 4<<30, "how large each is; its file is sparse")
	dir := flag.String("dir", ".cache/rack", "where their files, the daemon's state and the mounts are")
	flag.Parse()
	if flag.NArg() != 1 || *bays < 1 || *size < 64<<20 {
		fmt.Fprintln(os.Stderr, "usage: rack [-bays N] [-size BYTES] [-dir DIR] PROGRAM")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second ctrl-c ends this process at once
	if err := run(ctx, flag.Arg(0), *dir, *bays, *size); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "rack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, dir string, bays int, size int64) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Commands look for the daemon at this socket by default.
	r := rack{program: program, address: config.Here().API(), csi: "unix://" + filepath.Join(dir, "csi.sock")}
	state := []string{"--state-dir", filepath.Join(dir, "state"), "--api", r.address, "--csi-endpoint", r.csi, "--addons-endpoint", "unix://" + filepath.Join(dir, "addons.sock")}
	if os.Geteuid() != 0 {
		fmt.Println("not root: serving the simulated rack of examples/rack24.yaml; run as root for real drives, or loop devices where there are none to spare")
		return r.serve(ctx, append(state, "--sim", "examples/rack24.yaml")...)
	}
	spare, err := spareDrives(ctx, program)
	if err != nil {
		return err
	}
	if spare > 0 {
		fmt.Printf("%d drives of this machine could be used for volumes; none is before it is claimed: see `drivebay claim`\n", spare)
		r.csi = ""
		return r.serve(ctx, "--api", r.address)
	}
	mounts := filepath.Join(dir, "mnt")
	if err := os.MkdirAll(mounts, 0o750); err != nil {
		return err
	}
	loops, err := attach(ctx, dir, bays, size)
	if err == nil {
		fmt.Printf("this machine has no drive to spare: serving %d loop devices over files in %s\n", len(loops), dir)
		err = r.serve(ctx, append(state, "--loop", "--claim", "transport=loop,serial="+dir+"/bay*", "--volume-roots", mounts)...)
	}
	left := cleanUp(mounts, loops)
	if left == nil && err == nil && len(loops) > 0 {
		fmt.Printf("%d loop devices are detached, and nothing is mounted; the next `make run` finds the volumes in %s again\n", len(loops), dir)
	}
	return errors.Join(err, left)
}

// spareDrives counts the drives that could be claimed.
func spareDrives(ctx context.Context, program string) (int, error) {
	out, err := exec.CommandContext(ctx, program, "--local", "claim", "-o", "json").Output()
	if err != nil {
		return 0, fmt.Errorf("list the drives of this machine: %w", err)
	}
	var rows []struct {
		Claim   *drivebay.Claim
		Against []string
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return 0, fmt.Errorf("list the drives of this machine: %w", err)
	}
	spare := 0
	for _, r := range rows {
		if len(r.Against) == 0 {
			spare++
		}
	}
	return spare, nil
}

// attach makes the files that are missing, and a loop device for each file. The files
// stay: the next run finds the volumes on them again.
func attach(ctx context.Context, dir string, bays int, size int64) ([]string, error) {
	var loops []string
	for i := range bays {
		file := filepath.Join(dir, fmt.Sprintf("bay%d", i+1))
		if err := grow(file, size); err != nil {
			return loops, err
		}
		out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", "--partscan", "--direct-io=on", file).CombinedOutput()
		if err != nil {
			return loops, fmt.Errorf("loop device of %s: %w: %s", file, err, strings.TrimSpace(string(out)))
		}
		loops = append(loops, strings.TrimSpace(string(out)))
	}
	return loops, nil
}

// grow makes a file at least size bytes long. It never shrinks one: there are volumes on it.
func grow(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if at, err := f.Stat(); err != nil || at.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// rack is the daemon that is run.
type rack struct {
	program      string
	address, csi string // of its API, and of CSI
}

// serve runs the daemon until it ends or ctx ends.
func (r rack) serve(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"serve"}, args...)...)
	log := &quietLog{to: os.Stderr}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, log, log
	cmd.WaitDelay = 5 * time.Second // a program that the daemon has left can hold the pipe
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // ctrl-c reaches this process only
	ready, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); r.banner(ready, log) }()
	err := cmd.Run()
	stop()
	<-done
	if ctx.Err() == nil {
		return err
	}
	return nil // interrupted, and so was the program
}
