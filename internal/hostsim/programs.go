package hostsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/crypt"
	"github.com/drivebay/drivebay/internal/hostsim/internal/filesystem"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// installed returns the programs of the machine by name.
func (m *Machine) installed() map[string]program.Program {
	all := map[string]program.Program{"lvm": m.lvm.Run, "dmsetup": m.lvm.Dmsetup, "cryptsetup": crypt.Cryptsetup}
	maps.Copy(all, filesystem.Programs)
	maps.Copy(all, m.drbd.Programs())
	for _, name := range m.kernel.Without {
		delete(all, name)
	}
	return all
}

// Run implements host.Machine. ctx does not end a program that waits for a hung drive: its thread
// sleeps in the kernel.
func (m *Machine) Run(ctx context.Context, argv ...string) ([]byte, error) {
	return m.RunInput(ctx, nil, argv...)
}

// RunInput implements host.Worker.
func (m *Machine) RunInput(ctx context.Context, input []byte, argv ...string) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("run: no program")
	}
	m.kernel.Mu.Lock()
	m.runs++
	m.kernel.Mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	name := path.Base(argv[0])
	run := m.programs[name]
	if run == nil {
		return nil, fmt.Errorf("%s is not installed: %w", argv[0], fs.ErrNotExist)
	}
	p := program.New(ctx, m.devices, name, argv, input)
	code := run(p)
	switch {
	case p.Killed:
		return p.Out.Bytes(), &host.ExitError{Argv: argv, Code: -1}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], ctx.Err())
	case code != 0:
		return p.Out.Bytes(), &host.ExitError{Argv: argv, Code: code, Stderr: p.Errs.String()}
	}
	return p.Out.Bytes(), nil
}
