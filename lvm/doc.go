// Package lvm makes volume groups and logical volumes out of drives that are
// ours: one report in, plans of idempotent steps out.
//
// # What our commands see
//
// Every command carries --devices with the drives that the caller names, and
// nothing else exists for it (lvm(8), "--devices": it overrides the devices
// file and, with it, every filter of lvm.conf). So a stranger's volume group is
// never read, even one that has the same name on the next drive; a guest's
// group inside one of our volumes is not seen either, because the volume is not
// in the list and scan_lvs is off. The host's own configuration is overridden
// where it could change a result (see settings): hints, polling and monitoring
// daemons, the system id, discards, the layout of reports, the folder of the
// metadata archive.
//
// In the other direction, groups are made with autoactivation off, so that
// udev's event activation (69-lvm.rules: vgchange -aay) leaves them alone, and
// carry the tag Tag; a group of ours by name without that tag is refused.
//
// A drive that is left out of the list is a lost drive to lvm. It refuses to
// change such a group, and RemoveMissing, the one command that would act upon
// the mistake, wants to be told which drives are lost.
//
// # What is written
//
// pvcreate, vgcreate and vgextend are never told --yes: on a drive that carries
// a signature they ask, get no answer and do nothing. A physical volume gets a
// UUID that the plan chose before, so that a plan that was interrupted knows its
// own drive again whatever the kernel calls it now.
package lvm
