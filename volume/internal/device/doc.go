// Package device finds the block device of a volume and opens it. OpenForWriting is the one
// place where a device is opened for writing: identity, claim and record are proved there.
package device
