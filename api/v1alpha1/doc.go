// Package v1alpha1 is the version v1alpha1 of the objects of drivebay in Kubernetes.
//
// An object is a mirror and a request, never the truth: the node writes what it observes into the
// status, and people and the controller write what they want into the spec. Deleting an object changes
// nothing on the node, which writes the object again.
//
// The rules of a field that the API server enforces are markers beside the field: controller-gen
// writes them into the CRDs in deploy/chart/drivebay/crds. Every text and every list has a limit,
// because all objects of the cluster are in the memory of the API server and of the controller.
//
// +kubebuilder:object:generate=true
// +groupName=drivebay.io
package v1alpha1
