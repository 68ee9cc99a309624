package hostsim

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

// program runs a program and returns its exit status.
type program func(*process) int

// process is a running program.
type process struct {
	m         *block.Devices
	ctx       context.Context
	name      string
	argv      []string
	input     []byte
	killed    bool
	out, errs bytes.Buffer
}

func newProcess(ctx context.Context, m *block.Devices, name string, argv []string, input []byte) *process {
	return &process{m: m, ctx: ctx, name: name, argv: argv, input: input}
}

// say writes to standard output, complain to standard error.
func (p *process) say(format string, args ...any)      { fmt.Fprintf(&p.out, format+"\n", args...) }
func (p *process) complain(format string, args ...any) { fmt.Fprintf(&p.errs, format+"\n", args...) }

// fail writes an error message and returns the code.
func (p *process) fail(code int, format string, args ...any) int {
	p.complain(format, args...)
	return code
}

// flags are the options with their values (the last of each in set, all in all) and the other
// arguments.
type flags struct {
	set   map[string]string
	all   map[string][]string
	words []string
}

func (f *flags) put(name, value string) {
	f.set[name] = value
	f.all[name] = append(f.all[name], value)
}

func (f flags) has(name string) bool { _, ok := f.set[name]; return ok }

// getopt parses options as getopt_long(3) does: short lists the letters, long the words. A colon after
// one means that a value follows.
func getopt(args []string, short string, long ...string) (flags, error) {
	f := flags{set: map[string]string{}, all: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			f.words = append(f.words, args[i+1:]...)
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
			f.words = append(f.words, arg)
		}
	}
	return f, nil
}

// letters parses an argument of short options; used is the number of further arguments it needs.
func (f *flags) letters(word string, rest []string, short string) (used int, err error) {
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

// device returns the block device that is an argument of a program.
func (p *process) device(name string) *block.Device {
	p.m.Mu.RLock()
	defer p.m.Mu.RUnlock()
	if d := p.m.Lookup(name); d != nil && !d.Gone {
		return d
	}
	return nil
}

// reason returns the message for an error from the kernel.
func reason(err error) string {
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
