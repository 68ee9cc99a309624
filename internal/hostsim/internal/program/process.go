package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// The programs of a simulated machine parse arguments as the real programs do, so that a mistake of the
// daemon is found, and return the same exit status.

// Program runs a program and returns its exit status.
type Program func(*Process) int

// Process is a running program.
type Process struct {
	Devices   *block.Devices
	Ctx       context.Context
	Name      string
	Argv      []string
	Input     []byte
	Killed    bool
	Out, Errs bytes.Buffer
}

func New(ctx context.Context, m *block.Devices, name string, argv []string, input []byte) *Process {
	return &Process{Devices: m, Ctx: ctx, Name: name, Argv: argv, Input: input}
}

// Say writes to standard output, complain to standard error.
func (p *Process) Say(format string, args ...any)      { fmt.Fprintf(&p.Out, format+"\n", args...) }
func (p *Process) Complain(format string, args ...any) { fmt.Fprintf(&p.Errs, format+"\n", args...) }

// Fail writes an error message and returns the code.
func (p *Process) Fail(code int, format string, args ...any) int {
	p.Complain(format, args...)
	return code
}

// Flags are the options with their values (the last of each in set, all in all) and the other
// arguments.
type Flags struct {
	Set   map[string]string
	All   map[string][]string
	Words []string
}

func (f *Flags) put(name, value string) {
	f.Set[name] = value
	f.All[name] = append(f.All[name], value)
}

func (f Flags) Has(name string) bool { _, ok := f.Set[name]; return ok }

// Getopt parses options as getopt_long(3) does: short lists the letters, long the words. A colon after
// one means that a value follows.
func Getopt(args []string, short string, long ...string) (Flags, error) {
	f := Flags{Set: map[string]string{}, All: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			f.Words = append(f.Words, args[i+1:]...)
			return f, nil
		case strings.HasPrefix(arg, "--"):
			name, value, inline := strings.Cut(arg[2:], "=")
			takes := slices.Contains(long, name+":")
			switch {
			case !takes && !slices.Contains(long, name):
				return f, fmt.Errorf("unrecognized option '--%s'", name)
			case takes && !inline && i+1 == len(args):
				return f, fmt.Errorf("option '--%s' requires an argument", name)
			case takes && !inline:
				i++
				value = args[i]
			}
			f.put(name, value)
		case len(arg) > 1 && arg[0] == '-':
			used, err := f.letters(arg[1:], args[i+1:], short)
			if err != nil {
				return f, err
			}
			i += used
		default:
			f.Words = append(f.Words, arg)
		}
	}
	return f, nil
}

// letters parses an argument of short options; used is the number of further arguments it needs.
func (f *Flags) letters(word string, rest []string, short string) (used int, err error) {
	for i, c := range word {
		at := strings.IndexRune(short, c)
		switch {
		case at < 0 || c == ':':
			return 0, fmt.Errorf("invalid option -- '%c'", c)
		case at+1 == len(short) || short[at+1] != ':':
			f.put(string(c), "")
		case i+1 < len(word):
			f.put(string(c), word[i+1:])
			return 0, nil
		case len(rest) == 0:
			return 0, fmt.Errorf("option requires an argument -- '%c'", c)
		default:
			f.put(string(c), rest[0])
			return 1, nil
		}
	}
	return 0, nil
}

// Device returns the block device that is an argument of a program.
func (p *Process) Device(name string) *block.Device {
	p.Devices.Mu.RLock()
	defer p.Devices.Mu.RUnlock()
	if d := p.Devices.Lookup(name); d != nil && !d.Gone {
		return d
	}
	return nil
}

// Reason returns the message for an error from the kernel.
func Reason(err error) string {
	for _, r := range []struct {
		is   error
		text string
	}{{host.ErrGone, "No such device or address"}, {host.ErrPermission, "Operation not permitted"}, {kernel.ErrNoSpace, "No space left on device"}, {host.ErrTimeout, "Interrupted system call"}} {
		if errors.Is(err, r.is) {
			return r.text
		}
	}
	return "Input/output error"
}
