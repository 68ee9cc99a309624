// Package snapshots creates and deletes snapshots of thin volumes.
package snapshots
