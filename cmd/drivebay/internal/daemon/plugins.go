package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/drivebay/drivebay/addons"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
)

// plugin is a service for orchestrators on a separate socket.
type plugin interface {
	Serve(ctx context.Context, l net.Listener) error
}

// socket is the socket of a plugin, which is not opened if the endpoint is empty.
type socket struct {
	endpoint, flag string
	make           func() plugin
}

// plugins opens the sockets that are configured.
func (d *daemon) plugins() (serve []func(context.Context) error, err error) {
	return d.sockets(socket{d.config.CSIEndpoint, "--csi-endpoint", d.csi}, socket{d.config.AddonsEndpoint, "--addons-endpoint", d.addons})
}

// sockets opens sockets. Each function of serve answers on one.
func (d *daemon) sockets(all ...socket) (serve []func(context.Context) error, err error) {
	var open []net.Listener
	for _, p := range all {
		if p.endpoint == "" {
			continue
		}
		l, err := api.ListenUnix(config.SocketPath(p.endpoint))
		if err != nil {
			for _, l := range open {
				err = errors.Join(err, l.Close())
			}
			return nil, fmt.Errorf("%w: choose another socket with %s unix:///path", err, p.flag)
		}
		open = append(open, l)
		server := p.make()
		serve = append(serve, func(ctx context.Context) error { return server.Serve(ctx, l) })
	}
	return serve, nil
}

func (d *daemon) csi() plugin {
	opt := csi.Options{Version: d.opt.Version, NodeID: d.node(), Log: d.log, Latencies: &d.latencies, NodeOnly: d.config.Role == config.RoleNode}
	if d.volumes != nil {
		opt.Volumes = d.volumes
	}
	return csi.New(d.engine, opt)
}

func (d *daemon) addons() plugin {
	opt := addons.Options{Name: csi.Name, Version: d.opt.Version, Log: d.log, Latencies: &d.latencies, NodeOnly: d.config.Role == config.RoleNode}
	if d.volumes != nil {
		opt.Volumes, opt.Replication = d.volumes, d.replicas
	}
	return addons.New(d.engine, opt)
}
