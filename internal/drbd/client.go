package drbd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// apiVersion is API_VERSION of DRBD 8.4 (include/linux/drbd.h). DRBD 9 has 2.
const apiVersion = 1

// Client is a socket to the family "drbd". It serves one request at a time.
type Client struct {
	mu       sync.Mutex
	fd       int
	family   uint16
	sequence uint32
}

// Open finds the family in the kernel. The module must be loaded: Open does not load it.
func Open() (*Client, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("drbd: netlink socket: %w", err)
	}
	c := &Client{fd: fd}
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) open() error {
	if err := unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("drbd: netlink socket: %w", err)
	}
	name := text(unix.CTRL_ATTR_FAMILY_NAME, "drbd")
	b := native.AppendUint32(nil, uint32(netlinkHeader+genericHeader+unix.SizeofNlAttr+align(len(name.value))))
	b = native.AppendUint16(b, unix.GENL_ID_CTRL)
	b = native.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = native.AppendUint32(b, 0)
	b = native.AppendUint32(b, 0)
	b = append(b, unix.CTRL_CMD_GETFAMILY, 1, 0, 0)
	b = native.AppendUint16(b, uint16(unix.SizeofNlAttr+len(name.value)))
	b = native.AppendUint16(b, name.number)
	b = append(b, name.value...)
	b = append(b, make([]byte, align(len(name.value))-len(name.value))...)
	var version uint32
	err := c.exchange(context.Background(), b, 0, func(m message) (err error) {
		c.family, version, err = decodeFamily(m.body)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("drbd: %w", ErrUnavailable)
	case err != nil:
		return fmt.Errorf("drbd: find the netlink family: %w", err)
	case version != apiVersion:
		return fmt.Errorf("drbd: the kernel's DRBD has API version %d, not %d: %w", version, apiVersion, ErrOtherVersion)
	}
	return nil
}

// Close closes the socket.
func (c *Client) Close() error { return unix.Close(c.fd) }

// poll is how often a request that waits for the kernel looks at its context.
const poll = 200 * time.Millisecond

// uninterrupted calls what the kernel serves within the call, on a thread that no signal interrupts. DRBD waits interruptibly, has begun by then,
// and says ERR_INTR (drivers/block/drbd/drbd_nl.c, adm_detach); the Go runtime sends signals to its threads all the time, and so does a child
// that ends. They wait until the call is over, or go to another thread.
func uninterrupted(call func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var every, was unix.Sigset_t
	for i := range every.Val {
		every.Val[i] = ^every.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &every, &was); err != nil {
		return err
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil) }() // the mask is the one that stood
	return call()
}

// exchange sends a message and calls each with every answer, until the kernel has acknowledged the message.
func (c *Client) exchange(ctx context.Context, out []byte, sequence uint32, each func(message) error) error {
	defer clear(out) // it may hold a secret
	err := uninterrupted(func() error { return unix.Sendto(c.fd, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) })
	if err != nil {
		return err
	}
	in := make([]byte, 64<<10)
	defer clear(in) // the kernel puts the secret into a status
	var failed error
	for {
		ready := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(poll/time.Millisecond))
		if err != nil && err != unix.EINTR {
			return err
		}
		if n <= 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		n, _, err = unix.Recvfrom(c.fd, in, unix.MSG_TRUNC)
		if err != nil {
			return err
		}
		if n > len(in) {
			return fmt.Errorf("%w: %d bytes, truncated", errMalformed, n)
		}
		all, err := messages(in[:n])
		if err != nil {
			return err
		}
		for _, m := range all {
			switch {
			case m.sequence != sequence: // the answer to a request whose context ended
			case m.kind == unix.NLMSG_ERROR, m.kind == unix.NLMSG_DONE:
				if len(m.body) < 4 {
					return fmt.Errorf("%w: acknowledgment of %d bytes", errMalformed, len(m.body))
				}
				if e := int32(native.Uint32(m.body)); e < 0 {
					return unix.Errno(-e)
				}
				return failed
			case failed == nil:
				failed = each(m)
			}
		}
	}
}

// send sends a request of the family and calls each with every answer.
func (c *Client) send(ctx context.Context, r request, each func(reply) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.sequence++
	return c.exchange(ctx, r.encode(c.family, c.sequence), c.sequence, func(m message) error {
		if m.kind != c.family {
			return fmt.Errorf("%w: of family %d", errMalformed, m.kind)
		}
		r, err := decodeReply(m.body)
		if err != nil {
			return err
		}
		return each(r)
	})
}

// do sends a request whose only answer is the kernel's return code.
func (c *Client) do(ctx context.Context, operation string, r request) error {
	answered := false
	r.flags |= unix.NLM_F_ACK
	err := c.send(ctx, r, func(a reply) error {
		answered = true
		if !succeeded(a.code) {
			return &CodeError{operation, a.code, a.info}
		}
		return nil
	})
	var refused *CodeError
	switch {
	case errors.As(err, &refused):
		return err
	case err != nil:
		return fmt.Errorf("drbd: %s: %w", operation, err)
	case !answered:
		return fmt.Errorf("drbd: %s: the kernel did not answer", operation)
	}
	return nil
}

// Status reports one device.
func (c *Client) Status(ctx context.Context, minor uint32) (Status, error) {
	var s Status
	seen := false
	err := c.send(ctx, request{command: cmdGetStatus, minor: minor, flags: unix.NLM_F_ACK}, func(r reply) (err error) {
		if !succeeded(r.code) {
			return &CodeError{"status", r.code, r.info}
		}
		s, err = decodeStatus(r)
		seen = err == nil
		return err
	})
	if err == nil && !seen {
		err = errors.New("the kernel did not answer")
	}
	if err != nil {
		return Status{}, fmt.Errorf("drbd: status of minor %d: %w", minor, err)
	}
	return s, nil
}

// List reports every device.
func (c *Client) List(ctx context.Context) ([]Status, error) {
	var all []Status
	err := c.send(ctx, request{command: cmdGetStatus, minor: noMinor, flags: unix.NLM_F_DUMP}, func(r reply) error {
		if r.minor == noMinor { // a resource without a device
			return nil
		}
		s, err := decodeStatus(r)
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("drbd: list: %w", err)
	}
	return all, nil
}
