// Package lvm manages the volume groups and logical volumes on our drives: it reads one
// report and returns plans of idempotent steps.
//
// # What our commands see
//
// Every command carries --devices with the drives that the caller names, and LVM sees
// no other device (lvm(8), "--devices": it overrides the devices file and, with it,
// every filter of lvm.conf). So LVM never reads a foreign volume group, even one with
// the same name on the next drive. LVM does not see the volume group of a guest inside one of our
// volumes either, because the volume is not in the list and scan_lvs is off. Our
// settings override the host's configuration where it could change a result (see
// settings): hints, polling and monitoring daemons, the system id, discards, the
// layout of reports, the folder of the metadata archive.
//
// In the other direction, groups are made with autoactivation off, so that udev's
// event activation (69-lvm.rules: vgchange -aay) does not activate them, and with the tag
// Tag. The package refuses a group that has a name of ours and not that tag.
//
// LVM treats a drive that is not in the list as lost. It refuses to change such a
// group, and RemoveMissing, the one command that would act upon the mistake, requires
// the UUIDs of the lost drives.
//
// # What is written
//
// pvcreate, vgcreate and vgextend run without --yes: on a drive with a signature they
// ask for a confirmation, get none and do nothing. The plan chooses the UUID of a physical volume
// before it makes it, so that an interrupted plan recognizes its own drive again,
// whatever its kernel name is now.
package lvm
