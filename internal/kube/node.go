package kube

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/drives"
)

// The parts of the daemon that a node needs.
type (
	Engine  = drives.Engine
	Volumes = drives.Volumes
	Clock   = drives.Clock
)

// Options configure a Node.
type Options struct {
	Kubeconfig string // empty: the service account of the pod
	UserAgent  string
	Node       string // name of the node in the cluster
	Engine     Engine
	Volumes    Volumes // nil: the machine has no volumes
	Clock      Clock
	Log        *slog.Logger
}

// Node is the edge of a node to Kubernetes.
type Node struct{ drives *drives.Mirror }

// NewNode returns the edge of a node. It sends no request: the API server may be away.
func NewNode(opt Options) (*Node, error) {
	config, err := client.Load(client.Options{Kubeconfig: opt.Kubeconfig, UserAgent: opt.UserAgent})
	if err != nil {
		return nil, err
	}
	klog.SetSlogLogger(opt.Log) // of client-go
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	return &Node{drives.New(client.NewDrives(c), drives.Options{Node: opt.Node, Engine: opt.Engine, Volumes: opt.Volumes, Clock: opt.Clock, Log: opt.Log})}, nil
}

// Run keeps the objects up to date until ctx ends.
func (n *Node) Run(ctx context.Context) error { return n.drives.Run(ctx) }
