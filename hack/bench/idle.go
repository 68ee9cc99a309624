package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idle measures a daemon that has nothing to do, and that may have so many MiB resident. In two minutes everything that it
// does from time to time happens once, the collection that Go makes without need too (runtime, forcegcperiod).
func (d *daemon) idle(with string, limit float64) ([]row, error) {
	const window = 2 * time.Minute
	before, err := d.cpu()
	if err != nil {
		return nil, err
	}
	time.Sleep(window)
	after, err := d.cpu()
	if err != nil {
		return nil, err
	}
	resident, err := d.memory()
	if err != nil {
		return nil, err
	}
	share := 100 * (after - before).Seconds() / window.Seconds()
	return []row{
		{"idle CPU, " + with, "<= 1 % of a core", fmt.Sprintf("%.2f %%", share), share <= 1},
		{"resident memory, " + with, fmt.Sprintf("<= %.0f MiB", limit), fmt.Sprintf("%.1f MiB", resident), resident <= limit},
	}, nil
}

// memory returns the resident memory in MiB.
func (d *daemon) memory() (resident float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			resident = kib / 1024
		}
	}
	return resident, err
}

// cpu returns the processor time that all threads have used so far: the first number of
// schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst). The times of
// proc_pid_stat(5) are too coarse.
func (d *daemon) cpu() (used time.Duration, err error) {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.cmd.Process.Pid))
	for _, path := range all {
		var ns int64
		b, gone := os.ReadFile(path)
		if _, bad := fmt.Sscan(string(b), &ns); gone == nil && bad == nil {
			used += time.Duration(ns)
		}
	}
	return used, err
}
