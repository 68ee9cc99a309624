//go:build lab

package suite

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/drbd/drbdtest"
)

// drbdKernel is the DRBD of a guest's kernel, by the program in it.
type drbdKernel struct{ s *drbdSite }

// call runs a line of shell in the guest, and returns what it says, or an error of the class that its exit status tells.
func (k drbdKernel) call(line string) (string, error) {
	k.s.t.Helper()
	status, out, _ := strings.Cut(k.s.Output(fmt.Sprintf("(%s) >/tmp/out 2>&1; echo $?; cat /tmp/out", line)), "\n")
	n, err := strconv.Atoi(status)
	if err != nil {
		return "", err
	}
	if n != 0 {
		return "", errors.Join(fmt.Errorf("%s: exit status %d: %s", line, n, out), drbdtest.Classes[n])
	}
	return out, nil
}

func (k drbdKernel) verb(secret, verb string, args ...any) error {
	_, err := k.call(fmt.Sprintf("SECRET=%s %s %s %s", secret, k.s.program, verb, strings.TrimSpace(fmt.Sprintln(args...))))
	return err
}

func flag(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

func (k drbdKernel) NewResource(context.Context, string) error { return nil } // NewMinor does it
func (k drbdKernel) NewMinor(context.Context, string, uint32, uint32) error {
	return k.verb("", "new")
}
func (k drbdKernel) Attach(_ context.Context, _ uint32, b drbd.Backing) error {
	return k.verb("", "attach", b.Disk, b.Bytes)
}
func (k drbdKernel) Detach(_ context.Context, _ uint32, force bool) error {
	return k.verb("", "detach", flag(force, "force"))
}

// Connect finds out which of the two secrets it is: a secret has no text.
func (k drbdKernel) Connect(_ context.Context, _ string, p drbd.Peer) error {
	secret := drbdtest.Wrong
	if right, err := drbd.NewSecret(drbdtest.Right); err == nil && p.Secret == right {
		secret = drbdtest.Right
	}
	return k.verb(secret, "connect", p.Local, p.Remote, flag(p.DiscardMyData, "discard"))
}
func (k drbdKernel) Disconnect(_ context.Context, local, remote netip.AddrPort, force bool) error {
	return k.verb("", "disconnect", local, remote, flag(force, "force"))
}
func (k drbdKernel) Primary(_ context.Context, _ uint32, force bool) error {
	return k.verb("", "primary", flag(force, "force"))
}
func (k drbdKernel) Secondary(context.Context, uint32) error { return k.verb("", "secondary") }
func (k drbdKernel) Resize(_ context.Context, _ uint32, bytes uint64) error {
	return k.verb("", "resize", bytes)
}
func (k drbdKernel) Invalidate(context.Context, uint32) error { return k.verb("", "invalidate") }
func (k drbdKernel) Down(context.Context, string) error       { return k.verb("", "down") }
func (k drbdKernel) Close() error                             { return nil }

func (k drbdKernel) Status(context.Context, uint32) (x drbd.Status, err error) {
	out, err := k.call(k.s.program + " status")
	if err == nil {
		err = json.Unmarshal([]byte(out), &x)
	}
	return x, err
}

func (k drbdKernel) List(context.Context) (all []drbd.Status, err error) {
	out, err := k.call(k.s.program + " list")
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	return all, err
}

func (k drbdKernel) Disk() string { return k.s.disk }

func (k drbdKernel) Run(_ context.Context, argv []string) error {
	_, err := k.call(fmt.Sprintf("rm -f %s; %s", drbd.LastKnown(drbdtest.Minor), strings.Join(argv, " ")))
	return err
}

func (k drbdKernel) Write(_ context.Context, at int64, b []byte) error {
	_, err := k.call(fmt.Sprintf("echo %s | base64 -d | dd of=/dev/drbd%d bs=%d seek=%d iflag=fullblock oflag=direct conv=nocreat status=none", base64.StdEncoding.EncodeToString(b), drbdtest.Minor, len(b), at/int64(len(b))))
	return err
}

func (k drbdKernel) Read(_ context.Context, at int64, n int) ([]byte, error) {
	out, err := k.call(fmt.Sprintf("dd if=%s bs=%d skip=%d count=1 iflag=direct status=none | base64 -w0", k.s.disk, n, at/int64(n)))
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(strings.TrimSpace(out))
}

func (k drbdKernel) Log(context.Context) ([]string, error) {
	out, err := k.call("dmesg --notime")
	return strings.Split(out, "\n"), err
}
