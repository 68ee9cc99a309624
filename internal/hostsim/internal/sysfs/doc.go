// Package sysfs holds the files of a simulated machine: sysfs, proc, the udev database and /dev.
//
// A Tree is made of nodes: a folder, a link, or a file whose text is fixed or made at each read. Entries
// are the nodes of one drive, device or filesystem, which are removed together. Files implements
// host.Files over a tree.
//
// The tree has no lock: the machine's lock guards it. The owner of a node can hide it for some reads,
// as entries of a drive that flickers.
package sysfs
