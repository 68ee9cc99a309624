// Package provision creates and deletes volumes.
package provision
