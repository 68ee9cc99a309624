package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
)

// Options say which cluster, as for kubectl.
type Options struct {
	Kubeconfig string // empty: $KUBECONFIG, else ~/.kube/config
	Context    string // empty: the current one
	Node       string // only this node; empty: all
	UserAgent  string
	Log        *slog.Logger
}

// Connect returns the drives and volumes of a cluster, which it has read once.
func Connect(ctx context.Context, opt Options) (*Cluster, error) {
	klog.SetSlogLogger(opt.Log) // of client-go
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opt.Kubeconfig
	load := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: opt.Context})
	config, err := load.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: choose one with --kubeconfig, and a context with --context (`kubectl config get-contexts`)", err)
	}
	name := opt.Context
	if raw, err := load.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	return connect(ctx, opt, name, config)
}

// The requests of a person are few and not to wait for each other.
const (
	qps   = 50
	burst = 100
)

func connect(ctx context.Context, opt Options, name string, config *rest.Config) (*Cluster, error) {
	config.UserAgent, config.QPS, config.Burst = opt.UserAgent, qps, burst
	c, err := New(opt, name, config, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	return c, c.read(ctx)
}

// New returns the drives and volumes of a cluster, of which nothing is known before Follow. namespace is that of the Leases of
// the nodes, empty: all.
func New(opt Options, name string, config *rest.Config, namespace string) (*Cluster, error) {
	api, err := client.New(config)
	if err != nil {
		return nil, err
	}
	leases, err := client.NewLeases(config, namespace)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		opt: opt, name: name, host: config.Host, drives: client.NewDrives(api), volumes: client.NewVolumes(api), events: client.NewEvents(api), leases: leases,
		wake: make(chan struct{}, 1), changed: make(chan struct{}), snapshot: &drivebay.Snapshot{}, set: &drivebay.VolumeSet{}, refused: map[string]error{},
	}
	c.volumeRequests = volumeRequests{c}
	c.driveObjects = client.NewCache[v1alpha1.Drive](func(string) { c.touch() })
	c.volumeObjects = client.NewCache[v1alpha1.Volume](func(string) { c.touch() })
	return c, nil
}

// explain says what a person can do about an error of the API server.
func (c *Cluster) explain(what string, err error) error {
	where := fmt.Sprintf("context %q, %s", c.name, c.host)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: the cluster does not have them (%s): install drivebay there, or choose another cluster with --context", what, drivebay.ErrNotFound, where)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: your account may not do that (%s): %w", what, drivebay.ErrPermission, where, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w: the cluster does not accept your credentials (%s)", what, drivebay.ErrPermission, where)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%s: %w: the API server does not answer (%s): %w", what, drivebay.ErrUnavailable, where, err)
}
