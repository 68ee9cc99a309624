// Package drbd configures the kernel's DRBD, version 8.4, by generic netlink, and reads and writes its
// metadata.
//
// The package does not run drbdsetup: that program takes the shared secret as an argument, and every user of
// the machine can read the arguments of a process. The kernel takes it in a netlink message.
//
// Sources, all of Linux 6.1: include/linux/drbd_genl.h (commands and attributes), drbd_genl_api.h (header),
// drbd.h (states and return codes), genl_magic_struct.h (types of attributes), drivers/block/drbd/drbd_nl.c
// (the order of checks, what each command needs) and drbd_main.c (struct meta_data_on_disk).
// DRBD 9, which is not part of Linux, has the same family name with another API version: Open refuses it.
//
// TestLabDRBDCases shows on the kernel of Debian 12 (8.4.11):
//   - After a split brain the connection becomes StandAlone, and its addresses are forgotten. A peer with a wrong secret has
//     the same effect, on both sides: StandAlone alone proves no split brain, and who reaches the port can end a
//     connection that waits. The caller has to connect again.
//   - A second connect of a resource fails with the code of an address in use: the caller has to look at the
//     status first.
//   - A status that root asks for contains the secret. The client does not decode it, and clears its buffer.
package drbd
