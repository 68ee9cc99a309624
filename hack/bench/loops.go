package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// loops are loop devices of the kernel. The daemon that uses them runs as on a real
// machine, with nothing simulated in its memory.
type loops struct {
	dir  string
	devs []string
}

func newLoops(n int, size int64) (l *loops, err error) {
	l = &loops{}
	if l.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	for i := range n {
		file := filepath.Join(l.dir, fmt.Sprint("bay", i))
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
			return nil, errors.Join(err, l.close())
		}
		out, err := exec.Command("losetup", "--find", "--show", "--partscan", file).Output()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("losetup: %w", err), l.close())
		}
		l.devs = append(l.devs, strings.TrimSpace(string(out)))
	}
	return l, nil
}

func (l *loops) close() error {
	var errs []error
	for _, dev := range l.devs {
		errs = append(errs, exec.Command("losetup", "--detach", dev).Run())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// loopRows measures a daemon with 100 drives and 500 volumes in use, with objects of them in a cluster if kubeconfig names one.
func loopRows(binary, kubeconfig string) (rows []row, err error) {
	const drives, volumes = 100, 500
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: no volumes on loop devices: that takes root")
		return nil, nil
	}
	l, err := newLoops(drives, 1<<30)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	root, csi := filepath.Join(l.dir, "mnt"), endpoint("unix://"+filepath.Join(l.dir, "csi"))
	if err := os.Mkdir(root, 0o750); err != nil {
		return nil, err
	}
	args := []string{"--loop", "--claim", "transport=loop,serial=" + l.dir + "/*", "--csi-endpoint", string(csi), "--volume-roots", root}
	what, limit, settles := fmt.Sprintf("%d loop devices and %d volumes of ext4 mounted twice", drives, volumes), 40.0, time.Minute // it returns the memory that making them took
	if kubeconfig != "" {
		args = append(args, "--kubernetes", "--kubeconfig", kubeconfig, "--node-id", "bench")
		what, limit, settles = what+", and their objects", 48, 6*time.Minute // it writes ten objects a second
	}
	d, err := launch(binary, l.dir, args...)
	if err != nil {
		return nil, err
	}
	defer d.kill()
	all, took, err := csi.fillLoops(volumes, root)
	defer func() { err = errors.Join(err, csi.empty(all)) }()
	if err != nil {
		return nil, err
	}
	if _, err := csi.pace(all, 4*volumes, 4); err != nil {
		return nil, err
	}
	time.Sleep(settles)
	if rows, err = d.idle(what, limit); err != nil {
		return rows, err
	}
	if kubeconfig != "" {
		return rows, nil
	}
	paced, err := csi.pacedRows("NodeGetVolumeStats of the same, a connection each, 1000/s, up to 16 in flight", all, 8000)
	if err != nil {
		return rows, err
	}
	return append(append(rows, paced...), row{fmt.Sprintf("create, stage and publish of ext4 on a loop device, p50 / p99 of %d", volumes), "-",
		ms(percentile(took, 50)) + " / " + ms(percentile(took, 99)), true}), nil
}

// fillLoops makes and mounts volumes, one after the other.
func (e endpoint) fillLoops(n int, root string) (all []published, took []time.Duration, err error) {
	for began := time.Now(); len(all) == 0; time.Sleep(50 * time.Millisecond) { // until a drive can be used
		v, _, err := e.make("first", 64<<20, root)
		if err == nil {
			all = append(all, v)
		} else if time.Since(began) > 20*time.Second {
			return nil, nil, err
		}
	}
	for len(all) < n {
		v, d, err := e.make(fmt.Sprint("loop", len(all)), 64<<20, root)
		if err != nil {
			return all, nil, err
		}
		all, took = append(all, v), append(took, d)
	}
	return all, took, nil
}

// empty removes volumes, four at a time.
func (e endpoint) empty(all []published) error {
	var wg sync.WaitGroup
	slots, errs := make(chan struct{}, 4), make([]error, len(all))
	for i, v := range all {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = e.remove(v)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
