// Package device knows the layers of a volume (Stack): its piece of the drives, and the devices above it.
// It also opens devices. OpenForWriting is the one place where a device is opened for writing: identity,
// claim and record are proved there.
package device
