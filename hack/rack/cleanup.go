package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cleanUp gives back what the daemon used: it unmounts what is mounted below mounts, removes the
// device-mapper devices on the loop devices, and detaches these. Nothing is forced: what a program still
// uses stays, and the error names it.
func cleanUp(mounts string, loops []string) error {
	var errs []error
	for _, path := range mountedBelow(mounts) {
		if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", path, err))
		}
	}
	for _, name := range mappedOn(loops) {
		if out, err := exec.Command("dmsetup", "remove", "--retry", name).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("remove the device %s: %w: %s", name, err, strings.TrimSpace(string(out))))
		}
	}
	return errors.Join(append(errs, detach(loops))...)
}

// mountedBelow returns the mount points below a folder, the newest mounts first (proc(5), mountinfo).
func mountedBelow(dir string) (paths []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || dir == "" {
		return nil
	}
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			if path := plain.Replace(fields[4]); strings.HasPrefix(path, dir+"/") {
				paths = append(paths, path)
			}
		}
	}
	slices.Reverse(paths)
	return paths
}

// mappedOn returns the device-mapper devices on the devices or on their partitions, each before the ones that
// it is on.
func mappedOn(devices []string) (names []string) {
	var add func(folder string)
	add = func(folder string) {
		holders, _ := filepath.Glob(filepath.Join(folder, "holders", "*"))
		for _, h := range holders {
			add(filepath.Join("/sys/class/block", filepath.Base(h)))
			name, err := os.ReadFile(filepath.Join("/sys/class/block", filepath.Base(h), "dm", "name"))
			if n := strings.TrimSpace(string(name)); err == nil && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for _, d := range devices {
		folder := filepath.Join("/sys/class/block", filepath.Base(d))
		parts, _ := filepath.Glob(filepath.Join(folder, filepath.Base(d)+"p*"))
		for _, p := range append(parts, folder) {
			add(p)
		}
	}
	return names
}

// detach detaches the devices. The kernel keeps one that is still in use, and detaches it later
// (losetup(8), lazy destruction): the error names it.
func detach(loops []string) error {
	var errs []error
	for _, l := range loops {
		if out, err := exec.Command("losetup", "--detach", l).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("detach %s: %w: %s", l, err, strings.TrimSpace(string(out))))
			continue
		}
		if _, err := os.Stat(filepath.Join("/sys/class/block", filepath.Base(l), "loop")); err == nil {
			errs = append(errs, fmt.Errorf("%s is still in use: the kernel detaches it when its last user ends", l))
		}
	}
	return errors.Join(errs...)
}
