// Package drbd simulates the kernel's DRBD 8.4 and drbdmeta(8).
//
// The metadata are at the end of the disk below, in the kernel's format: what reads them on a real machine reads them
// here, and a restart finds only what was written. The rules are those of drivers/block/drbd of Linux 6.1, as the
// lab shows them (TestLabDRBDCases and TestLabDRBDInternal): metadata are unclean once they were in use, a resize leaves the old ones
// behind, drbdmeta goes by the size that it saw last. The model is simpler in three things: it has no activity log
// (each write is in the bitmap at once), a connection copies every 100 ms what differs, whatever the protocol, and both
// sides must agree on the protocol and on the secret only.
package drbd
