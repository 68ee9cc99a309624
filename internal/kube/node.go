package kube

import (
	"context"
	"errors"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/events"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
	"github.com/drivebay/drivebay/internal/kube/internal/drives"
	"github.com/drivebay/drivebay/internal/kube/volumes"
)

// The parts of the daemon that a node needs.
type (
	// Engine is the drive engine.
	Engine interface {
		drives.Engine
		events.Engine
	}
	Clock = drives.Clock
	// Volumes is the volume engine.
	Volumes interface {
		drives.Volumes
		volumes.Engine
		heartbeat.Volumes
	}
)

// Options configure a Node.
type Options struct {
	Kubeconfig string // empty: the service account of the pod
	Namespace  string // of the Lease of the node; empty: that of the pod, or of the kubeconfig
	UserAgent  string
	Node       string // name of the node in the cluster
	Engine     Engine
	Volumes    Volumes // nil: the machine has no volumes
	Driver     string  // name of the CSI driver
	Cursor     string  // file that remembers which events of the machine were shown
	Clock      Clock
	Log        *slog.Logger
	// Replicates returns why the machine replicates nothing, nil if it can.
	Replicates func(context.Context) error
	// ReplicationSecret reads the secret of replicated volumes; nil: the machine has none.
	ReplicationSecret func() (string, error)
}

// Node is the edge of a node to Kubernetes.
type Node struct{ parts []func(context.Context) error }

// NewNode returns the edge of a node. It sends no request: the API server may be away.
func NewNode(opt Options) (*Node, error) {
	own := client.Options{Kubeconfig: opt.Kubeconfig, UserAgent: opt.UserAgent}
	config, err := client.Load(own)
	if err != nil {
		return nil, err
	}
	klog.SetSlogLogger(opt.Log) // of client-go
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	seen := events.Options{Node: opt.Node, Driver: opt.Driver, Engine: opt.Engine, Events: client.NewEvents(c), Cursor: opt.Cursor, Clock: opt.Clock, Log: opt.Log}
	o := drives.Options{Node: opt.Node, Engine: opt.Engine, Clock: opt.Clock, Log: opt.Log}
	if opt.Volumes == nil {
		mirror := drives.New(client.NewDrives(c), o)
		seen.Drive = mirror.Object
		return &Node{[]func(context.Context) error{mirror.Run, events.New(seen).Run}}, nil
	}
	o.Volumes = opt.Volumes
	leases, err := client.NewLeases(config, namespaceOf(opt.Namespace, own))
	if err != nil {
		return nil, err
	}
	beat := heartbeat.New(heartbeat.Options{Node: opt.Node, Volumes: opt.Volumes, Drives: opt.Engine, Replicates: opt.Replicates, Leases: leases, Log: opt.Log})
	part := volumes.New(volumes.Options{Name: opt.Node, Engine: opt.Volumes, Objects: client.NewVolumes(c), Snapshots: client.NewSnapshots(c), Log: opt.Log,
		ReplicationSecret: opt.ReplicationSecret, Mirrored: beat.Mirrored,
		Old: func(ids []string) { beat.Old("volumes", ids) }})
	o.Old = func(names []string) { beat.Old("drives", names) }
	mirror := drives.New(client.NewDrives(c), o)
	seen.Drive, seen.Volume, seen.Volumes = mirror.Object, part.Object, opt.Volumes.Volumes
	return &Node{[]func(context.Context) error{mirror.Run, part.Run, beat.Run, events.New(seen).Run}}, nil
}

// Run keeps the objects up to date until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	ended := make(chan error, len(n.parts))
	for _, part := range n.parts {
		go func() { ended <- part(ctx) }()
	}
	var errs []error
	for range n.parts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
