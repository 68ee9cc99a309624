package csi_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

const kubelet = "/var/lib/kubelet"

// TestSanity runs csi-sanity against the whole driver on a simulated machine: once
// with and once without snapshots for the race detector.
func TestSanity(t *testing.T) {
	sim, err := hostsim.New(hostsim.Spec{Drives: []hostsim.Group{{Count: 6, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "2TB"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	drives, volumes := drive(t, sim, drivemgr.Options{Claim: claim(t, "all")}, kubelet)
	config := func(v csi.Volumes) sanity.TestConfig {
		return csitest.Config(serve(t, drives, v), kubelet, csitest.Simulated{Machine: sim, Root: kubelet})
	}
	thin, plain := config(volumes), config(thick{volumes})
	passes := []csitest.Run{
		csitest.NewRun(thin, true, drivebay.BackingThin, false), csitest.NewRun(plain, false, drivebay.BackingPartition, true),
		csitest.NewRun(thin, true, drivebay.BackingThin, true), csitest.NewRun(plain, false, drivebay.BackingPartition, false),
		csitest.NewRun(plain, false, drivebay.BackingLVM, true), csitest.NewRun(plain, false, drivebay.BackingMirror, false),
		csitest.Encrypted(csitest.NewRun(thin, true, drivebay.BackingThin, false), "open, sesame"),
		csitest.Encrypted(csitest.NewRun(plain, false, drivebay.BackingPartition, true), "open, sesame"),
	}
	csitest.Sanity(t, passes[:min(passesOfSanity, len(passes))]...)
}

// thick says that there are no snapshots: the suite takes some of any volume.
type thick struct{ *volume.Engine }

func (thick) Capabilities() drivebay.VolumeCapabilities { return drivebay.VolumeCapabilities{} }

// drive is the engines of a machine, at work, with room for volumes.
func drive(t *testing.T, machine host.Worker, opt drivemgr.Options, root string) (*drivemgr.Manager, *volume.Engine) {
	t.Helper()
	drives, volumes := engines(t, machine, opt, root)
	waitForRoom(t, volumes)
	return drives, volumes
}

// engines are those of a machine, at work.
func engines(t *testing.T, machine host.Worker, opt drivemgr.Options, root string) (*drivemgr.Manager, *volume.Engine) {
	t.Helper()
	st := store.Memory()
	drives := drivemgr.New(machine, st, opt)
	volumes, err := volume.New(machine, drives, st, lvm.New(machine, ""), volume.Options{Node: "sim", Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, drives.Run)
	run(t, volumes.Run)
	return drives, volumes
}

// serve is the server of one, on a socket.
func serve(t *testing.T, drives csi.Engine, volumes csi.Volumes) (endpoint string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := csi.New(drives, csi.Options{Version: "test", NodeID: "sim", Volumes: volumes})
	run(t, func(ctx context.Context) error { return server.Serve(ctx, l) })
	return "unix://" + socket
}

// run has something at work until the test ends.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error)
	go func() { end <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}

func claim(t *testing.T, text string) (s drivebay.Selectors) {
	t.Helper()
	if err := s.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

// waitForRoom waits until the drives can carry volumes and all of them were read: ListVolumes answers UNAVAILABLE
// before.
func waitForRoom(t *testing.T, e *volume.Engine) {
	t.Helper()
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if c, err := e.Capacity(t.Context(), class); err == nil && c.Available > 0 && e.Listed() == nil {
			return
		}
	}
	t.Fatal("no drive can carry a volume")
}
