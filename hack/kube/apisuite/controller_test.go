//go:build kube

package apisuite

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/controller"
	"k8s.io/client-go/rest"
)

// newController returns a controller that leads.
func newController(t *testing.T, config *rest.Config) (c *controller.Controller, stop func()) {
	t.Helper()
	return newLoggedController(t, config, logger(t))
}

func newLoggedController(t *testing.T, config *rest.Config, log *slog.Logger) (c *controller.Controller, stop func()) {
	t.Helper()
	api, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	c = controller.New(controller.Options{Objects: client.NewVolumes(api), Snapshots: client.NewSnapshots(api), Leases: leasesOf(t, config), Log: log})
	c.Lead()
	return c, run(t, c.Run)
}

// nodesOf returns the nodes that a controller knows.
func nodesOf(c *controller.Controller) []string {
	names, _ := c.Nodes()
	return names
}

// ready waits until a controller knows all volumes, and the room on some nodes.
func ready(t *testing.T, c *controller.Controller, nodes ...string) {
	t.Helper()
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("nodes %v, listed: %v", nodesOf(c), c.Listed())
		}
	})
	eventually(t, "the controller knows the nodes", func() bool {
		for _, n := range nodes {
			if has, err := c.CapacityOn(t.Context(), class, []string{n}); err != nil || has.Available == 0 {
				return false
			}
		}
		return c.Listed() == nil
	})
}

func serve(t *testing.T, s interface {
	Serve(context.Context, net.Listener) error
}) (endpoint string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	run(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	return "unix://" + socket
}

// TestKubeSanity runs csi-sanity against the controller of a cluster and the node service of its node.
func TestKubeSanity(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 6)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1")
	config := csitest.Config(serve(t, csi.New(n.drives, csi.Options{Version: "test", NodeID: n.name, Volumes: n.engine, NodeOnly: true})), kubelet, csitest.Simulated{Machine: n.sim, Root: kubelet})
	config.ControllerAddress = serve(t, csi.New(nil, csi.Options{Version: "test", Cluster: c}))
	csitest.Sanity(t, csitest.NewRun(config, false, drivebay.BackingPartition, false), csitest.NewRun(config, false, drivebay.BackingLVM, true),
		csitest.NewRun(config, true, drivebay.BackingThin, false), csitest.Encrypted(csitest.NewRun(config, false, drivebay.BackingPartition, false), "open, sesame"))
}
