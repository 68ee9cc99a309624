// Package cluster shows the drives and volumes of all nodes by their objects, as the daemon of a node shows its own: with
// it the commands of a node work on a cluster, with the rights of the person. What a command changes is written as a wish into
// the spec of an object; the node answers in the status.
package cluster
