// Package events shows the events of a machine as Events of Kubernetes, on the objects at which people look: the Drive,
// the Node, the Volume, its claim and its pods.
//
// The events of the drive engine are the source, and its store is the queue: while the API server is away, none is read.
// Equal events become one Event with a count. Those of one reason about one object are written twice a minute
// at most, and all together once a second in the long run.
package events
