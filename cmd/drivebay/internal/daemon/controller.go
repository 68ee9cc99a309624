package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/drivebay/drivebay/addons"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/clusterpage"
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
	serve, err := d.sockets(
		socket{d.config.CSIEndpoint, "--csi-endpoint", func() plugin {
			return csi.New(nil, csi.Options{Version: d.opt.Version, Cluster: c, Log: d.log, Latencies: &d.latencies})
		}},
		socket{d.config.AddonsEndpoint, "--addons-endpoint", func() plugin {
			return addons.New(nil, addons.Options{Name: csi.Name, Version: d.opt.Version, Cluster: c, Log: d.log, Latencies: &d.latencies})
		}})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.opt.Out, "drivebay %s is a controller of a Kubernetes cluster\n  %-10s%s\n", d.opt.Version, "CSI", d.config.CSIEndpoint)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if d.config.Kubernetes.Page {
		page, err := d.clusterPage(ctx, c)
		if err != nil {
			return err // and the process ends with its sockets
		}
		serve = append(serve, func(context.Context) error { return page() })
	}
	ended := make(chan error, len(serve))
	for _, f := range serve {
		go func() { ended <- f(ctx) }()
	}
	err = c.Run(ctx)
	cancel()
	for range serve {
		err = errors.Join(err, <-ended)
	}
	return err
}

// clusterPage opens the socket of the page of the cluster, and returns what serves it until ctx ends. The objects are read
// when the page is first opened. Nothing else is served there: a program that reaches the socket reads with the rights of
// the controller, and changes nothing.
func (d *daemon) clusterPage(ctx context.Context, c *kube.Controller) (serve func() error, err error) {
	objects, err := c.Objects()
	if err != nil {
		return nil, err
	}
	l, err := api.ListenUnix(config.SocketPath(d.config.API))
	if err != nil {
		return nil, fmt.Errorf("%w: choose another socket with --api unix:///path", err)
	}
	page := clusterpage.New(objects, d.opt.Version, time.Now(), ctx.Done())
	srv := &http.Server{
		ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 32 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/ui/") {
				http.NotFound(w, r)
				return
			}
			objects.Follow()
			page.ServeHTTP(w, r)
		}),
	}
	fmt.Fprintf(d.opt.Out, "  %-10s%s (`drivebay ui`)\n", "page", d.config.API)
	return func() error {
		defer objects.Close()
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}
