package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// realRows measures this machine's own drives, and the simulated rack for comparison:
// the ratio of the two holds on a fast machine and on a slow one.
func realRows() ([]row, error) {
	m, err := host.Real("/")
	if err != nil {
		return nil, err
	}
	mounts, err := m.Mounts(context.Background())
	if err != nil {
		return nil, err
	}
	sim, err := hostsim.New(hostsim.Generate(100))
	if err != nil {
		return nil, err
	}
	defer sim.Close()
	simMounts, err := sim.Mounts(context.Background())
	if err != nil {
		return nil, err
	}
	var found []drivebay.Drive
	before := cpu()
	const rounds = 20
	rescan := medianOf(rounds, func() { found = drivemgr.List(m, mounts) })
	spent := (cpu() - before) / rounds
	simulated := medianOf(rounds, func() { drivemgr.List(sim, simMounts) })
	tick := medianOf(rounds, func() {
		for i := range found {
			drivemgr.ReadKernel(m, &found[i], found[i].Kernel, m.Now())
		}
	})
	n := len(found)
	return []row{
		{fmt.Sprintf("rescan of the %d drives here", n), "-", ms(rescan), true},
		{"CPU of one such rescan", "-", ms(spent), true},
		{fmt.Sprintf("kernel evidence of %d drives, one tick", n), "-", ms(tick), true},
		{"rescan of 100 simulated drives", "-", ms(simulated), true},
	}, nil
}

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
