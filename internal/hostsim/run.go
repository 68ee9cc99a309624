package hostsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// The programs of a simulated machine. They read their arguments as the real
// ones do, so that a mistake in ours shows, and end with the same status.

// program runs and gives its exit status.
type program func(*process) int

// process is a program that runs.
type process struct {
	m         *Machine
	ctx       context.Context
	name      string
	argv      []string
	input     []byte
	killed    bool
	out, errs bytes.Buffer
}

// programs is filled in by init, because some lead to others.
var programs map[string]program

func init() {
	programs = map[string]program{
		"mkfs.ext4": mkfsExt4, "mke2fs": mkfsExt4, "mkfs.xfs": mkfsXFS, "mkfs.btrfs": mkfsBtrfs,
		"fsck.ext4": e2fsck, "e2fsck": e2fsck, "xfs_repair": xfsRepair, "btrfs": btrfs, "lvm": lvmProgram, "dmsetup": dmsetup, "cryptsetup": cryptsetup,
	}
}

// Run implements host.Machine. A program that waits for a drive that hangs is not
// ended by ctx either: its thread sleeps in the kernel.
func (m *Machine) Run(ctx context.Context, argv ...string) ([]byte, error) {
	return m.RunInput(ctx, nil, argv...)
}

// RunInput implements host.Worker.
func (m *Machine) RunInput(ctx context.Context, input []byte, argv ...string) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("run: no program")
	}
	m.mu.Lock()
	m.stats.Runs++
	m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	name := path.Base(argv[0])
	run := programs[name]
	if run == nil || slices.Contains(m.without, name) {
		return nil, fmt.Errorf("%s is not installed: %w", argv[0], fs.ErrNotExist)
	}
	p := &process{m: m, ctx: ctx, name: name, argv: argv, input: input}
	code := run(p)
	switch {
	case p.killed:
		return p.out.Bytes(), &host.ExitError{Argv: argv, Code: -1}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], ctx.Err())
	case code != 0:
		return p.out.Bytes(), &host.ExitError{Argv: argv, Code: code, Stderr: p.errs.String()}
	}
	return p.out.Bytes(), nil
}

// say writes to the standard output, complain to the other.
func (p *process) say(format string, args ...any)      { fmt.Fprintf(&p.out, format+"\n", args...) }
func (p *process) complain(format string, args ...any) { fmt.Fprintf(&p.errs, format+"\n", args...) }

// fail complains and is an exit status.
func (p *process) fail(code int, format string, args ...any) int {
	p.complain(format, args...)
	return code
}

// flags are options with their values, the last one of each and all of them, and
// the other words.
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

// getopt reads options as getopt_long(3) does: short is its list of letters, long
// has the words; a colon behind says that a value follows.
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

// letters reads a word of short options; used is how many further words it took.
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

// device finds the block device that a program was given.
func (p *process) device(name string) *device {
	p.m.mu.RLock()
	defer p.m.mu.RUnlock()
	if d := p.m.lookup(name); d != nil && !d.gone {
		return d
	}
	return nil
}
