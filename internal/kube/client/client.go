package client

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drivebay/drivebay/api/v1alpha1"
)

// Options say how to reach the API server.
type Options struct {
	// Kubeconfig is the file that describes the connection; empty: the service account of the pod.
	Kubeconfig string
	UserAgent  string
	// QPS is the number of requests in a second in the long run, Burst that of a moment; 0: a default.
	QPS   float32
	Burst int
}

// The requests of a node in the steady state are none. The limits are for a start with 100 drives and
// 500 volumes, which is to be done within a minute.
const (
	defaultQPS   = 10
	defaultBurst = 50
)

// Load returns the configuration of a connection.
func Load(opt Options) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if opt.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("service account of the pod: %w: outside of a pod, name a kubeconfig", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", opt.Kubeconfig); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", opt.Kubeconfig, err)
	}
	config.UserAgent, config.QPS, config.Burst = opt.UserAgent, opt.QPS, opt.Burst
	if config.QPS == 0 {
		config.QPS, config.Burst = defaultQPS, defaultBurst
	}
	return config, nil
}

// New returns the client of the group drivebay.io.
func New(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &v1alpha1.GroupVersion, "/apis"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(own)
}
