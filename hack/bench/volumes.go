package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// volumeRows are the budgets of volumes and of their CSI driver.
func volumeRows(binary string) (rows []row, err error) {
	for _, measure := range []func() ([]row, error){func() ([]row, error) { return fullDaemon(binary) }, // while our own heap is empty
		statsRows, costRows, listRows, func() ([]row, error) { return loopRows(binary) }} {
		more, err := measure()
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// fullDaemon measures what a daemon with 500 volumes in use takes.
func fullDaemon(binary string) ([]row, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	csi := endpoint("unix://" + filepath.Join(dir, "csi"))
	d, err := start(binary, 0, "--claim", "all", "--csi-endpoint", string(csi), "--volume-roots", kubelet)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	time.Sleep(5 * time.Second) // every drive looked at
	const volumes = 500
	all, _, err := csi.fill(nil, volumes)
	if err != nil {
		return nil, err
	}
	if _, err := csi.pace(all, 4*volumes, 4); err != nil {
		return nil, err
	}
	time.Sleep(time.Minute) // what it took to make them is given back
	with := fmt.Sprintf("100 drives and %d volumes", volumes)
	rows, err := d.idle(with)
	if err != nil {
		return rows, err
	}
	resident, anonymous, err := d.memory()
	if err != nil {
		return rows, err
	}
	share, err := simulated(volumes)
	rows[1].target, rows[1].kept = "-", true
	ours := resident - share*anonymous
	return append(rows, row{fmt.Sprintf("the same less the simulated machine, which has %.0f %% of what is alive", 100*share), "<= 40 MiB", fmt.Sprintf("%.1f MiB", ours), ours <= 40}), err
}

// simulated is which share of a heap the simulated machine has: the filesystems
// and the tables on its drives, which a real one does not keep in our memory.
func simulated(volumes int) (share float64, err error) {
	empty := live()
	n, err := newNode(0, 0)
	if err != nil {
		return 0, err
	}
	if _, _, err := n.fill(nil, volumes); err != nil {
		return 0, err
	}
	all, sim := live(), n.sim
	if err := n.close(); err != nil {
		return 0, err
	}
	n = nil
	alone := live()
	runtime.KeepAlive(sim)
	return (alone - empty) / (all - empty), nil
}

// live is how much of the heap is in use, in bytes.
func live() float64 {
	var m runtime.MemStats
	for range 2 { // what has a finalizer takes two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// loopRows makes volumes on the kernel's own loop devices.
func loopRows(binary string) (rows []row, err error) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: no volumes on loop devices: that takes root")
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "bay")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(file, 8<<30); err != nil {
		return nil, err
	}
	out, err := exec.Command("losetup", "--find", "--show", "--partscan", "--direct-io=on", file).Output()
	if err != nil {
		return nil, fmt.Errorf("losetup: %w", err)
	}
	loop := strings.TrimSpace(string(out))
	defer func() { _ = exec.Command("losetup", "--detach", loop).Run() }()
	took, err := onLoop(binary, dir, file)
	if err != nil {
		return nil, err
	}
	return []row{{fmt.Sprintf("create, stage and publish of ext4 on a loop device, p50 / p99 of %d", len(took)), "-", ms(percentile(took, 50)) + " / " + ms(percentile(took, 99)), true}}, nil
}

// onLoop makes and mounts volumes on the drive over a file, one after the other.
func onLoop(binary, dir, file string) (took []time.Duration, err error) {
	root, csi := filepath.Join(dir, "mnt"), endpoint("unix://"+filepath.Join(dir, "csi"))
	if err := os.Mkdir(root, 0o750); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "serve", "--state-dir", dir, "--api", "unix://"+filepath.Join(dir, "s"), "--csi-endpoint", string(csi),
		"--loop", "--claim", "serial="+file, "--volume-roots", root)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	var first published
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) { // until the drive can be used
		if first, _, err = csi.make("first", 64<<20, root); err == nil {
			break
		}
		if time.Since(began) > 20*time.Second {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, csi.remove(first)) }()
	for i := range 20 {
		v, d, err := csi.make(fmt.Sprint("loop", i), 64<<20, root)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
		if err := csi.remove(v); err != nil {
			return nil, err
		}
	}
	return took, nil
}
