package kube

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/cluster"
	"github.com/drivebay/drivebay/internal/kube/controller"
	"github.com/drivebay/drivebay/internal/kube/election"
)

// ControllerOptions configure a Controller.
type ControllerOptions struct {
	Kubeconfig string // empty: the service account of the pod
	Namespace  string // of the Leases; empty: that of the pod, or of the kubeconfig
	UserAgent  string
	Identity   string // of this process among the controllers of the cluster
	Log        *slog.Logger
}

// Controller is the controller of a cluster. Of several, one leads and changes volumes.
type Controller struct {
	*controller.Controller

	config *rest.Config
	leases client.Leases
	opt    ControllerOptions
}

// The controller has the requests of all nodes to make.
const (
	controllerQPS   = 50
	controllerBurst = 100
)

// NewController returns a controller. It sends no request: the API server may be away.
func NewController(opt ControllerOptions) (*Controller, error) {
	own := client.Options{Kubeconfig: opt.Kubeconfig, UserAgent: opt.UserAgent, QPS: controllerQPS, Burst: controllerBurst}
	config, err := client.Load(own)
	if err != nil {
		return nil, err
	}
	klog.SetSlogLogger(opt.Log) // of client-go
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	leases, err := client.NewLeases(config, namespaceOf(opt.Namespace, own))
	if err != nil {
		return nil, err
	}
	return &Controller{
		Controller: controller.New(controller.Options{Objects: client.NewVolumes(c), Snapshots: client.NewSnapshots(c), Leases: leases, Log: opt.Log}),
		config:     config, leases: leases, opt: opt,
	}, nil
}

// Objects returns the drives and volumes of the cluster for people who look at them. They are read from its Follow on.
func (c *Controller) Objects() (*cluster.Cluster, error) {
	return cluster.New(cluster.Options{Log: c.opt.Log}, "", c.config, c.leases.Namespace())
}

func namespaceOf(name string, opt client.Options) string {
	if name != "" {
		return name
	}
	return client.Namespace(opt)
}

// leaderLease is the name of the Lease that the leader holds.
const leaderLease = "drivebay-controller"

// Run follows the objects, and takes part in the election, until ctx ends. It returns an error once another controller
// leads after this one.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Controller.Run(ctx) }()
	err := election.Run(ctx, election.Options{
		Leases: c.leases, Name: leaderLease, Identity: c.opt.Identity, Log: c.opt.Log,
		Lead:   c.Lead,
		Follow: func(leader string) { c.Follow(leader + " leads") },
	})
	c.Follow("this process ends")
	cancel()
	<-ended
	return err
}
