// Package controller is the controller of a cluster of storage nodes: it implements the volumes that the CSI
// controller service needs over the Volume objects and the Leases of the nodes.
//
// It makes nothing itself. It writes into an object what a node is to do, and waits until the node has answered
// that generation of the spec. Two controllers that work at once do no harm: the name of an object is the id of
// the volume, so there is one object for a name; each change of a spec names the version that it is based on;
// and an object is moved to another node only by deleting the version in which its node said that it made
// nothing and will not.
package controller
