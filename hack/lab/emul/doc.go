// Package emul models drives and enclosures that exist in software only: SATA
// disks behind a SCSI to ATA translation, and SES enclosures. A model takes a
// command and answers it; what carries the commands from a kernel is not here but
// in package tcmu.
//
// Everything that a device is stands in its description (Disk, Enclosure);
// everything that can happen to it while it runs is a Change.
//
// One thing an emulated enclosure cannot have is the slot's link "device" in
// sysfs. The kernel makes it only for a disk whose SCSI target hangs below a SAS
// remote phy: ses_match_to_enclosure (drivers/scsi/ses.c) takes the disk's
// address with sas_get_address only if scsi_is_sas_rphy holds for the target's
// parent, and that compares the device's release function with the SAS transport
// class's own (drivers/scsi/scsi_transport_sas.c). The parent of a tcm_loop target
// is the SCSI host itself, and no attribute makes it anything else.
// ses_intf_add, besides, looks for enclosures below the disk's own host only
// (enclosure_find), so that a disk of a real or emulated SAS controller does not
// find an enclosure of tcm_loop either. What remains is page 0Ah, which carries
// the SAS addresses that the description gives.
package emul
