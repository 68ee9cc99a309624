package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/kube"
)

// control runs the controller of a cluster until ctx ends, or until it has led and another controller does. It has no
// drives, and keeps nothing on disk.
func (d *daemon) control(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the name of this controller: %w", err)
	}
	c, err := kube.NewController(kube.ControllerOptions{
		Kubeconfig: d.config.Kubernetes.Kubeconfig, Namespace: d.config.Kubernetes.Namespace, UserAgent: "drivebay-controller/" + d.opt.Version,
		Identity: host + "_" + rand.Text()[:8], Log: d.log, // a pod that is restarted keeps its name
	})
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	l, err := api.ListenUnix(config.SocketPath(d.config.CSIEndpoint))
	if err != nil {
		return fmt.Errorf("%w: choose another socket with --csi-endpoint unix:///path", err)
	}
	server := csi.New(nil, csi.Options{Version: d.opt.Version, Cluster: c, Log: d.log, Latencies: &d.latencies})
	fmt.Fprintf(d.opt.Out, "drivebay %s is a controller of a Kubernetes cluster\n  %-10s%s\n", d.opt.Version, "CSI", d.config.CSIEndpoint)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	err = c.Run(ctx)
	cancel()
	return errors.Join(err, <-ended)
}
