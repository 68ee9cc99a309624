// Package content is what is written on drives: bytes, kept sparsely, and the formats that programs and
// the kernel find in them.
//
// It reads and writes partition tables (GPT), superblocks of ext4, XFS and btrfs, LUKS headers and labels
// of LVM. What a real filesystem keeps in many places is a private note behind its superblock, so that
// everything is copied with the bytes.
//
// Functions take a read or a write function, not a device.
package content
