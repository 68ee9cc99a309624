// Package kube connects a node to Kubernetes: it mirrors the drives to objects of the group drivebay.io, and does what
// the spec of these objects requests. It is an edge: the node works without the API server, and the objects
// follow when it is back.
//
// Only packages below this one, and api/v1alpha1, import the libraries of Kubernetes.
package kube
