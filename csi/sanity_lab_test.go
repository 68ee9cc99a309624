//go:build lab

package csi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi/csitest"
)

// TestLabSanity runs csi-sanity against a daemon that is there already, on the
// drives of an emulated machine. DRIVEBAY_SANITY names the passes, such as
// "thin/xfs lvm/block": a backing and a filesystem; "thin/ext4:snapshot,Expand" is
// only what has one of these words in its name.
func TestLabSanity(t *testing.T) {
	config := csitest.Config(os.Getenv("CSI_ENDPOINT"), kubelet, nil)
	config.TestVolumeSize, config.TestVolumeExpandSize = 320<<20, 384<<20
	for _, dir := range []string{"/pods", "/plugins"} {
		if err := os.MkdirAll(kubelet+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var runs []csitest.Run
	for _, pass := range strings.Fields(os.Getenv("DRIVEBAY_SANITY")) {
		what, only, _ := strings.Cut(pass, ":")
		backing, fs, _ := strings.Cut(what, "/")
		r := csitest.NewRun(config, backing == string(drivebay.BackingThin), drivebay.Backing(backing), fs == "block")
		r.Name = what
		if fs != "block" {
			r.Config.TestVolumeParameters[drivebay.ParameterFSType] = fs
		}
		if only != "" {
			r.Only = strings.Split(only, ",")
		}
		runs = append(runs, r)
	}
	csitest.Sanity(t, runs...)
}
