package client

import (
	"cmp"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// namespaceFile is where the kubelet puts the namespace of a pod (Kubernetes documentation, "Accessing the
// Kubernetes API from a Pod").
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Namespace returns the namespace of a connection: that of the pod, or of the context in the kubeconfig.
func Namespace(opt Options) string {
	const none = "default"
	if opt.Kubeconfig == "" {
		text, _ := os.ReadFile(namespaceFile) // without one, the connection fails as well
		return cmp.Or(strings.TrimSpace(string(text)), none)
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: opt.Kubeconfig}
	name, _, _ := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).Namespace() // Load reports what is wrong with the file
	return cmp.Or(name, none)
}
