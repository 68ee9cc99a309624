// Package kernelevents receives what the kernel reports by itself: uevents and its log.
package kernelevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Uevent is one kernel uevent.
type Uevent struct {
	Action    string // add, remove, change, move, online, offline, bind, unbind
	Subsystem string // block, nvme, scsi ...
	DevPath   string // below /sys, "/devices/..."
	DevName   string // "sda"
	Env       map[string]string
	// Overflow means that events were lost: list everything again.
	Overflow bool
}

// Uevents receives group 1 of NETLINK_KOBJECT_UEVENT, the kernel's own messages: group 2 carries
// udev's, and a container has no udev.
func Uevents(ctx context.Context) (<-chan Uevent, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("uevent socket: %w", err)
	}
	const buffer = 8 << 20 // a thousand drives at once; ENOBUFS reports that more were lost
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("uevent socket: bind: %w", err)
	}
	f := os.NewFile(uintptr(fd), "uevents")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("uevent socket: %w", err)
	}
	receive := func(buf []byte) (n int, from unix.Sockaddr, err error) {
		waitErr := raw.Read(func(fd uintptr) bool {
			n, from, err = unix.Recvfrom(int(fd), buf, 0)
			return !errors.Is(err, unix.EAGAIN)
		})
		if waitErr != nil {
			return 0, nil, waitErr
		}
		return n, from, err
	}
	out := make(chan Uevent, 256)
	stop := context.AfterFunc(ctx, func() { f.Close() })
	go func() {
		defer close(out)
		defer stop()
		defer f.Close()
		buf := make([]byte, 64<<10)
		for {
			n, from, err := receive(buf)
			var e Uevent
			switch {
			case errors.Is(err, unix.ENOBUFS):
				e = Uevent{Overflow: true}
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				return
			default:
				peer, ok := from.(*unix.SockaddrNetlink)
				if !ok || peer.Pid != 0 { // only the kernel has port 0: any other sender forges events
					continue
				}
				if e, ok = parseUevent(buf[:n]); !ok {
					continue
				}
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// parseUevent parses "add@/devices/...\0ACTION=add\0KEY=value\0..." (lib/kobject_uevent.c).
func parseUevent(b []byte) (Uevent, bool) {
	head, rest, ok := bytes.Cut(b, []byte{0})
	if !ok || !bytes.Contains(head, []byte("@/")) {
		return Uevent{}, false
	}
	e := Uevent{Env: map[string]string{}}
	for kv := range bytes.SplitSeq(rest, []byte{0}) {
		if k, v, ok := strings.Cut(string(kv), "="); ok {
			e.Env[k] = v
		}
	}
	e.Action, e.Subsystem, e.DevPath = e.Env["ACTION"], e.Env["SUBSYSTEM"], e.Env["DEVPATH"]
	e.DevName = strings.TrimPrefix(e.Env["DEVNAME"], "/dev/")
	return e, e.Action != "" && e.DevPath != ""
}
