//go:build root

package csi_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"golang.org/x/sys/unix"
)

// TestRootSanity runs csi-sanity against the whole driver on loop devices of this
// machine: real partitions, filesystems and mounts.
func TestRootSanity(t *testing.T) {
	machine, err := host.Real("/")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "kubelet")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "pods"), 0o755), os.MkdirAll(filepath.Join(root, "plugins"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		loop(t, filepath.Join(dir, "drive-"+name))
	}
	opt := drivemgr.Options{Loop: true, Claim: claim(t, "transport=loop,serial="+dir+"/drive-*")}
	drives, volumes := drive(t, machine, opt, root)
	config := csitest.Config(serve(t, drives, thick{volumes}), root, nil)
	config.TestVolumeSize, config.TestVolumeExpandSize = 1<<30, 3<<29
	runs := []csitest.Run{csitest.For(config, false, drivebay.BackingPartition, true)}
	for _, fs := range drivebay.FSTypes {
		// A mounted ext4 grows for those with CAP_SYS_RESOURCE only (fs/ext4/resize.c),
		// which a container's root may lack.
		if may, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0); fs == "ext4" && (err != nil || may == 0) {
			t.Log("ext4 is left out: it cannot grow here, CAP_SYS_RESOURCE is missing")
			continue
		}
		r := csitest.For(config, false, drivebay.BackingPartition, false)
		r.Name += " " + fs
		r.Config.TestVolumeParameters[drivebay.ParameterFSType] = fs
		runs = append(runs, r)
	}
	csitest.Sanity(t, runs...)
}

// loop is a loop device over a sparse file, until the test ends.
func loop(t *testing.T, file string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 32<<30)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", "--partscan", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup %s: %v: %s", file, err, out)
	}
	dev := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", dev).CombinedOutput(); err != nil {
			t.Errorf("losetup --detach %s: %v: %s", dev, err, out)
		}
	})
}
