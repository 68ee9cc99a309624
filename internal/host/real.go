package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host/counters"
	"github.com/drivebay/drivebay/internal/host/kernelevents"
	"golang.org/x/sys/unix"
)

// real is the machine that we run on, or the one whose root is mounted at a folder.
type real struct {
	*tree
	wallClock
	locks    udevLocks
	mounts   mountTable
	cache    mountCache
	counters counters.Files
}

var _ Worker = (*real)(nil)

// Real opens the machine below root: "/" is this machine, "/host" the one whose files a container has
// there.
func Real(root string) (Worker, error) {
	t, err := newTree(root)
	if err != nil {
		return nil, fmt.Errorf("machine below %s: %w", root, err)
	}
	return &real{tree: t}, nil
}

// wallClock is the wall clock.
type wallClock struct{}

func (wallClock) Now() time.Time                         { return time.Now() }
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Root returns the folder that is the root of the machine.
func (r *real) Root() string { return cmp.Or(r.dir, "/") }

func (r *real) Describe() Description {
	name, err := r.ReadFile("etc/hostname")
	host := string(bytes.TrimSpace(name))
	if err != nil || host == "" || r.dir == "" {
		if h, err := os.Hostname(); err == nil && r.dir == "" {
			host = h
		}
	}
	return Description{Name: host, Kind: "real"}
}

// ReadFile reads by open files what package counters keeps open.
func (r *real) ReadFile(name string) ([]byte, error) {
	if r.dir == "" && counters.IsKept(name) {
		if b, ok := r.counters.Read(name, r.Now(), r.openAttribute); ok {
			return b, nil
		}
	}
	return r.tree.ReadFile(name)
}

func (r *real) openAttribute(name string) (int, error) {
	return r.openat(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// Mounts returns the last table while the kernel reports no change of it.
func (r *real) Mounts(context.Context) ([]Mount, error) {
	return r.cache.get(r.Now(), r.watchMounts, r.readMounts)
}

// watchMounts opens the table that readMounts reads first. Where that one cannot be opened, the table
// is read each time.
func (r *real) watchMounts() (int, error) {
	return r.openat(pid1Mounts, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// readMounts uses system calls where they show the mounts of pid 1, and else reads the mount table as a
// file.
func (r *real) readMounts() ([]Mount, error) {
	if r.dir == "" && samePlaceAsInit() {
		if mounts, err := mountsByCall(); err == nil {
			return mounts, nil
		}
	}
	return r.mounts.of(r)
}

// maxOutput bounds the output of a program.
const maxOutput = 64 << 20

// unkillable is how long a killed program may take to end. A program that the kernel blocks (a drive
// does not answer) is left behind: it ends when the kernel's call returns.
const unkillable = 3 * time.Second

// Run runs a program from our own mount namespace, not from the root, in the C locale. A program that
// ctx ends has two seconds to close its pipes.
func (r *real) Run(ctx context.Context, argv ...string) ([]byte, error) {
	return r.RunInput(ctx, nil, argv...)
}

// RunInput passes the input through a pipe and writes it to no file.
func (r *real) RunInput(ctx context.Context, input []byte, argv ...string) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("run: no program")
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 2 * time.Second
	out, errs := bounded{left: maxOutput}, bounded{left: 64 << 10}
	cmd.Stdout, cmd.Stderr = &out, &errs
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	err := wait(ctx, cmd)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("%s: %w: %w", argv[0], err, ctx.Err())
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], ctx.Err())
	case out.cut:
		return nil, fmt.Errorf("%s: output of more than %d bytes", argv[0], maxOutput)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is not installed: %w: %w", argv[0], fs.ErrNotExist, err)
	case errors.As(err, &exit):
		return out.kept.Bytes(), &ExitError{Argv: argv, Code: exit.ExitCode(), Stderr: errs.kept.String()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	return out.kept.Bytes(), nil
}

var errHeld = errors.New("the kernel does not end the process")

// wait is cmd.Run, except that it abandons a program that cannot be killed. After errHeld the caller
// must not read the output: the program may still print.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(unkillable):
		return errHeld
	}
}

// bounded keeps the first bytes of an output and drops the rest, so that the program ends as it would
// have without the limit.
type bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom would bypass Write
	left int
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := p[:min(len(p), b.left)]
	b.cut = b.cut || len(keep) < len(p)
	b.left -= len(keep)
	b.kept.Write(keep)
	return len(p), nil
}

// OpenDrive opens the device node below the root, without O_EXCL and without waiting: with O_NONBLOCK
// sd_open checks no medium, so that opening wakes no drive. A caller that must not wake a drive reads
// ATAPowerMode or SCSITestUnitReady first.
func (r *real) OpenDrive(_ context.Context, dev string) (OpenDrive, error) {
	fd, err := r.openat(strings.TrimPrefix(dev, "/"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dev, openError(err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		unix.Close(fd)
		return nil, fmt.Errorf("open %s: %w: not a block device", dev, ErrUnsupported)
	}
	return &realDrive{fd: fd}, nil
}

func openError(err error) error {
	switch {
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOMEDIUM):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: reading a drive requires root, or membership in the group of its device node: %w", ErrPermission, err)
	}
	return err
}

// Uevents returns the uevents of the kernel.
func (r *real) Uevents(ctx context.Context) (<-chan Uevent, error) { return kernelevents.Uevents(ctx) }

// KernelLog returns the lines of the kernel log from now on.
func (r *real) KernelLog(ctx context.Context) (<-chan LogLine, error) {
	f, err := r.open("dev/kmsg", unix.O_RDONLY)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w: reading the kernel log requires root or CAP_SYSLOG: %w", ErrPermission, err)
		}
		return nil, err
	}
	return kernelevents.Log(ctx, f)
}
