package lvm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// mapper has one device, and keeps what is done to it.
type mapper struct {
	table string
	did   []string
}

func (m *mapper) Run(_ context.Context, argv ...string) ([]byte, error) {
	if argv[1] == "table" && m.table == "" {
		return nil, &host.ExitError{Argv: argv, Code: 1, Stderr: "Device does not exist.\nCommand failed.\n"}
	}
	if argv[1] != "table" {
		m.did = append(m.did, strings.Join(argv[1:], " "))
	}
	return []byte(m.table + "\n"), nil
}

// TestHold: tables are those that lvm2 2.03.16 makes on Linux 6.1.
func TestHold(t *testing.T) {
	const (
		name   = "drivebay--a-pvmove0"
		plain  = "0 262144 mirror core 1 4096 2 253:1 0 253:2 0"
		held   = plain + " 1 handle_errors"
		back   = "0 262144 linear 253:1 0"
		pieces = "0 8192 linear 8:0 2048\n8192 262144 mirror core 1 4096 2 8:32 10240 8:0 10240" // without --atomic
	)
	hold, retreat := (*System).KeepFailedWrites, (*System).RevertToSource
	for _, c := range []struct {
		what  string
		do    func(*System, context.Context, string, string) error
		table string
		to    string
		err   error
	}{
		{"a move that has begun is held", hold, plain, held, nil},
		{"one that is held stays as it is", hold, held, "", nil},
		{"one that is taken back is not held", hold, back, "", drivebay.ErrInvalid},
		{"one of many pieces is not ours", hold, pieces, "", drivebay.ErrInvalid},
		{"one that is not active is not found", hold, "", "", ErrNotFound},
		{"one that is held is taken back", retreat, held, back, nil},
		{"so is one that is not", retreat, plain, back, nil},
		{"once is enough", retreat, back, "", nil},
		{"pieces are left alone", retreat, pieces, "", nil},
		{"what is not active needs nothing", retreat, "", "", ErrNotFound},
	} {
		m := &mapper{table: c.table}
		err := c.do(New(m, ""), t.Context(), "drivebay-a", "pvmove0")
		var want []string
		if c.to != "" {
			want = []string{"load " + name + " --table " + c.to, "resume --noflush --nolockfs --noudevsync " + name}
		}
		if !errors.Is(err, c.err) || !slices.Equal(m.did, want) {
			t.Errorf("%s: %q, %v", c.what, m.did, err)
		}
	}
}

func TestCopyLegs(t *testing.T) {
	for legs, want := range map[string]struct {
		unread    bool
		unwritten int
	}{
		"AA": {false, -1}, "SA": {true, -1}, "RA": {true, -1}, "DA": {false, 0}, "FA": {false, 0},
		"AD": {false, 1}, "AS": {false, 1}, "DD": {false, 1}, "Aa": {false, -1}, "": {false, -1},
	} {
		c := Copy{Legs: legs}
		if c.Unread() != want.unread || c.Unwritten() != want.unwritten {
			t.Errorf("%q: unread %v, unwritten %d", legs, c.Unread(), c.Unwritten())
		}
	}
}

// refuser fails every command.
type refuser struct{ err error }

func (r refuser) Run(context.Context, ...string) ([]byte, error) { return nil, r.err }

// TestDeviceMissing: only what dmsetup says about a device that does not exist is
// ErrNotFound. The texts are those of dmsetup 1.02.185.
func TestDeviceMissing(t *testing.T) {
	for text, missing := range map[string]bool{
		"Device does not exist.\nCommand failed.\n":                                                                                              true,
		"device-mapper: table ioctl on drivebay--a-pvmove0  failed: No such device or address\nCommand failed.":                                  true,
		"device-mapper: table ioctl on drivebay--a-pvmove0  failed: Cannot allocate memory\nCommand failed.":                                     false,
		"/dev/mapper/control: open failed: No such device\nFailure to communicate with kernel device-mapper driver.\nCommand failed.":            false,
		"/dev/mapper/control: open failed: Operation not permitted\nFailure to communicate with kernel device-mapper driver.\nCommand failed.\n": false,
		"": false,
	} {
		s := New(refuser{&host.ExitError{Argv: []string{"dmsetup"}, Code: 1, Stderr: text}}, "")
		_, copied := s.CopyProgress(t.Context(), "drivebay-a", "pvmove0")
		for what, err := range map[string]error{
			"copied": copied, "hold": s.KeepFailedWrites(t.Context(), "drivebay-a", "pvmove0"), "retreat": s.RevertToSource(t.Context(), "drivebay-a", "pvmove0"),
		} {
			if err == nil || errors.Is(err, ErrNotFound) != missing {
				t.Errorf("%s: %q: %v", what, text, err)
			}
		}
	}
}
