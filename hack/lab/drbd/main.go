// Command drbd drives package drbd in a guest: one request a call. A secret comes by the environment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/drbd/drbdtest"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		for status, class := range drbdtest.Classes {
			if errors.Is(err, class) {
				os.Exit(status)
			}
		}
		os.Exit(1)
	}
}

const (
	resource = drbdtest.Resource
	minor    = drbdtest.Minor
)

func run(ctx context.Context, verb string, args []string) error {
	if verb == "metadata" {
		return metadata(args[0], args[1:])
	}
	c, err := drbd.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	signals()
	force := len(args) > 0 && args[len(args)-1] == "force"
	switch verb {
	case "new":
		if err := c.NewResource(ctx, resource); err != nil {
			return err
		}
		return c.NewMinor(ctx, resource, 0, minor)
	case "attach":
		return c.Attach(ctx, minor, drbd.Backing{Disk: args[0], Bytes: size(args[1])})
	case "detach":
		return c.Detach(ctx, minor, force)
	case "connect":
		secret, err := drbd.NewSecret(os.Getenv("SECRET"))
		if err != nil {
			return err
		}
		return c.Connect(ctx, resource, drbd.Peer{Local: netip.MustParseAddrPort(args[0]), Remote: netip.MustParseAddrPort(args[1]),
			Protocol: drbd.ProtocolC, Secret: secret, DiscardMyData: len(args) > 2 && args[2] == "discard"})
	case "disconnect":
		return c.Disconnect(ctx, netip.MustParseAddrPort(args[0]), netip.MustParseAddrPort(args[1]), force)
	case "primary":
		return c.Primary(ctx, minor, force)
	case "secondary":
		return c.Secondary(ctx, minor)
	case "resize":
		return c.Resize(ctx, minor, size(args[0]))
	case "invalidate":
		return c.Invalidate(ctx, minor)
	case "down":
		return c.Down(ctx, resource)
	case "status":
		s, err := c.Status(ctx, minor)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(s)
	case "list":
		all, err := c.List(ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	return fmt.Errorf("no verb %q", verb)
}

// signals sends each thread all the time what the Go runtime sends it now and then: a request must not notice.
func signals() {
	runtime.GOMAXPROCS(2) // the request keeps one until the runtime sees that it takes long
	send := func() {
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil {
				_ = unix.Tgkill(os.Getpid(), id, unix.SIGURG)
			}
		}
	}
	begun := make(chan bool)
	go func() {
		for send(); ; send() {
			select {
			case begun <- true:
			default:
			}
		}
	}()
	<-begun
}

func size(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// metadata reads the superblock at the end of a disk, or at the end that it had before. The kernel writes it past the page
// cache, in which an old one stays while the disk is attached.
func metadata(device string, end []string) error {
	f, err := os.OpenFile(device, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if len(end) > 0 {
		at = int64(size(end[0]))
	}
	b, err := unix.Mmap(-1, 0, drbd.SuperblockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON) // aligned
	if err != nil {
		return err
	}
	if _, err := f.ReadAt(b, at-int64(len(b))); err != nil {
		return err
	}
	m, err := drbd.DecodeMetadata(b)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}
