package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	"github.com/drivebay/drivebay/csi"
	apidoc "github.com/drivebay/drivebay/docs/api"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/metrics"
)

// open opens the machine; a simulated one comes with a handler that breaks its
// drives.
func (d *daemon) open() (sim http.Handler, err error) {
	if d.config.Sim == "" {
		d.machine, err = host.Real(d.config.Root)
		return nil, err
	}
	machine, err := hostsim.LoadFile(d.config.Sim)
	if err != nil {
		return nil, err
	}
	d.machine = machine
	if err := d.simClaim.UnmarshalText([]byte(machine.Claim())); err != nil {
		return nil, fmt.Errorf("%s: claim: %w", d.config.Sim, err)
	}
	return machine.Handler(), nil
}

// edge makes the server of the API, the metrics and the simulator.
func (d *daemon) edge(sim http.Handler) *api.Server {
	version, commit := buildVersion()
	server := api.New(d.engine, api.Options{
		Version: api.Version{Version: version, Commit: commit, Go: runtime.Version(), Started: d.machine.Now()},
		Metrics: metrics.Handler(d.engine, nil, version, commit),
		OpenAPI: apidoc.OpenAPI,
		Ready:   d.engine.Unready,
		Log:     d.log,
	})
	if sim != nil {
		server.Mount("/sim/", sim)
	}
	return server
}

// plugin makes the CSI server, where one is asked for.
func (d *daemon) plugin() (serve func(context.Context) error, err error) {
	if d.config.CSIEndpoint == "" {
		return nil, nil
	}
	node := d.config.NodeID
	if node == "" {
		node = d.machine.Describe().Name
	}
	l, err := api.ListenUnix(strings.TrimPrefix(d.config.CSIEndpoint, "unix://"))
	if err != nil {
		return nil, fmt.Errorf("%w: name another socket with --csi-endpoint unix:///path", err)
	}
	version, _ := buildVersion()
	server := csi.New(d.engine, csi.Options{Version: version, NodeID: node, Log: d.log})
	return func(ctx context.Context) error { return server.Serve(ctx, l) }, nil
}

// listen opens the socket, and the TCP address where one is asked for.
func (d *daemon) listen(ctx context.Context) ([]api.Listener, error) {
	unix, err := api.ListenUnix(strings.TrimPrefix(d.config.API, "unix://"))
	if err != nil {
		return nil, fmt.Errorf("%w: name another socket with --api unix:///path", err)
	}
	if d.config.Listen == "" {
		return []api.Listener{unix}, nil
	}
	tcp, err := api.ListenTCP(ctx, d.config.Listen)
	if err != nil {
		unix.Close()
		return nil, err
	}
	d.tcp = tcp.Addr().String()
	return []api.Listener{unix, tcp}, nil
}
