//go:build root

package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/hack/loopdisk"
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
		loopdisk.Make(t, filepath.Join(dir, "drive-"+name), 32<<30)
	}
	opt := drivemgr.Options{Loop: true, Claim: claim(t, "transport=loop,serial="+dir+"/drive-*")}
	drives, volumes := drive(t, machine, opt, root)
	config := csitest.Config(serve(t, drives, thick{volumes}), root, nil)
	config.TestVolumeSize, config.TestVolumeExpandSize = 1<<30, 3<<29
	runs := []csitest.Run{csitest.NewRun(config, false, drivebay.BackingPartition, true)}
	for _, fs := range drivebay.FSTypes {
		// A mounted ext4 grows for those with CAP_SYS_RESOURCE only (fs/ext4/resize.c),
		// which a container's root may lack.
		if may, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0); fs == "ext4" && (err != nil || may == 0) {
			t.Log("ext4 is left out: it cannot grow here, CAP_SYS_RESOURCE is missing")
			continue
		}
		r := csitest.NewRun(config, false, drivebay.BackingPartition, false)
		r.Name += " " + fs
		r.Config.TestVolumeParameters[drivebay.ParameterFSType] = fs
		runs = append(runs, r)
	}
	csitest.Sanity(t, runs...)
}
