package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// real is the machine we run on, or the one whose root is mounted at a folder.
type real struct {
	*tree
	wall
}

// Real opens the machine below root: "/" is this one, "/host" the one whose
// files a container was given.
func Real(root string) (Machine, error) {
	t, err := newTree(root)
	if err != nil {
		return nil, fmt.Errorf("machine below %s: %w", root, err)
	}
	return &real{tree: t}, nil
}

// wall is the time of day.
type wall struct{}

func (wall) Now() time.Time                         { return time.Now() }
func (wall) After(d time.Duration) <-chan time.Time { return time.After(d) }

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

func (r *real) Mounts(context.Context) ([]Mount, error) { return mountsOf(r) }

// maxOutput bounds what a program may print.
const maxOutput = 64 << 20

// Run runs a program with a plain environment. A program that ctx ends gets two
// seconds to let go of its pipes.
func (r *real) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("run: no program")
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 2 * time.Second
	var out, errs bounded
	out.left, errs.left = maxOutput, 64<<10
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s is not installed: %w", argv[0], err)
	case errors.As(err, &exit):
		return out.Bytes(), &ExitError{Argv: argv, Code: exit.ExitCode(), Stderr: errs.String()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	return out.Bytes(), nil
}

// bounded is a buffer that refuses to grow without end.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errors.New("the program prints too much")
	}
	b.left -= len(p)
	return b.Buffer.Write(p)
}

// OpenDrive opens without O_EXCL and without waiting: O_NONBLOCK keeps the block
// layer from checking media, so that opening wakes nothing (sd_open, open(2)).
func (r *real) OpenDrive(_ context.Context, dev string) (Drive, error) {
	fd, err := unix.Open(filepath.Join("/", r.dir, dev), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dev, openError(err))
	}
	return &realDrive{fd: fd}, nil
}

func openError(err error) error {
	switch {
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOMEDIUM):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: reading a drive needs root, or membership in the group of its device node: %w", ErrPermission, err)
	}
	return err
}
