// Package drives mirrors the drives of a node to Drive objects, and does what the spec of these objects requests.
//
// status.go, request.go and compare.go decide, from an object and the state of the engine, what to
// call and what to write; they know no API server. mirror.go writes.
package drives
