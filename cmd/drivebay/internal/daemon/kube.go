package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/internal/kube"
)

// kubernetes returns the part of the daemon that shows the drives and volumes in Kubernetes, or nil if it is not configured.
func (d *daemon) kubernetes() (func(context.Context) error, error) {
	if !d.config.Kubernetes.Enabled {
		return nil, nil
	}
	opt := kube.Options{
		Kubeconfig: d.config.Kubernetes.Kubeconfig, Namespace: d.config.Kubernetes.Namespace, UserAgent: "drivebay/" + d.opt.Version, Node: d.node(),
		Engine: d.engine, Driver: csi.Name, Cursor: filepath.Join(d.config.StateDir, "kubernetes.json"), Clock: d.machine, Log: d.log,
	}
	if d.volumes != nil {
		opt.Volumes, opt.Replicates, opt.ReplicationSecret = d.volumes, d.replicas.Replicates, secretOf(d.config.Replication.SecretFile)
	}
	node, err := kube.NewNode(opt)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return node.Run, nil
}
