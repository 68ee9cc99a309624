package daemon

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay/internal/kube"
)

// kubernetes returns the part of the daemon that mirrors the drives to Kubernetes, or nil if it is not configured.
func (d *daemon) kubernetes() (func(context.Context) error, error) {
	if !d.config.Kubernetes.Enabled {
		return nil, nil
	}
	opt := kube.Options{
		Kubeconfig: d.config.Kubernetes.Kubeconfig, UserAgent: "drivebay/" + d.opt.Version, Node: d.node(),
		Engine: d.engine, Clock: d.machine, Log: d.log,
	}
	if d.volumes != nil {
		opt.Volumes = d.volumes
	}
	node, err := kube.NewNode(opt)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return node.Run, nil
}
