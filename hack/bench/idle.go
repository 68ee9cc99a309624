package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func (d *daemon) idle(with string) ([]row, error) {
	const window = 10 * time.Second
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
		{"resident memory, " + with, "<= 40 MiB", fmt.Sprintf("%.1f MiB", resident), resident <= 40},
	}, nil
}

// memory is what is resident, in MiB.
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

// cpu is the processor time used so far (proc_pid_stat(5), fields 14 and 15; a
// clock tick is 10 ms on Linux).
func (d *daemon) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
