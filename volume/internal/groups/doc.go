// Package groups knows the volume groups: the newest report of LVM, what it says of each logical
// volume, and which drives each group uses. It activates and deactivates, and changes nothing that
// is written on a drive.
package groups
