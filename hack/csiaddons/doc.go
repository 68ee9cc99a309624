// Package csiaddons holds the daemon against the programs that call CSI-Addons: the
// command csi-addons and the sidecar of kubernetes-csi-addons, as they are released.
// They run as they would in a pod; the few objects that they read of a cluster are
// given to them by a server of the test.
//
//	make test-addons
package csiaddons
