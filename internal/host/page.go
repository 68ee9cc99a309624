package host

// Page names one query that a drive can answer. Its text is also the name of the file that holds the
// page in a recording.
type Page string

// Family is the command set that a page belongs to.
type Family string

const (
	FamilyATA  Family = "ata"
	FamilyNVMe Family = "nvme"
	FamilySCSI Family = "scsi"
)

// ATA pages (ACS-4). They are sent through SG_IO as SAT ATA PASS-THROUGH (16). Each is 512 bytes or a
// multiple, unless its comment says otherwise.
const (
	ATAPowerMode       Page = "ata-power-mode"        // CHECK POWER MODE: 1 byte, the COUNT register. Does not wake the drive
	ATAIdentify        Page = "ata-identify"          // IDENTIFY DEVICE
	ATASmartData       Page = "ata-smart-data"        // SMART READ DATA
	ATASmartThresholds Page = "ata-smart-thresholds"  // SMART READ THRESHOLDS
	ATASmartStatus     Page = "ata-smart-status"      // SMART RETURN STATUS: 2 bytes, LBA mid and LBA high
	ATALogDirectory    Page = "ata-log-directory"     // READ LOG EXT 00h
	ATASummaryErrorLog Page = "ata-error-log"         // SMART READ LOG 01h
	ATAExtErrorLog     Page = "ata-ext-error-log"     // READ LOG EXT 03h, first sector
	ATASelfTestLog     Page = "ata-selftest-log"      // SMART READ LOG 06h
	ATAExtSelfTestLog  Page = "ata-ext-selftest-log"  // READ LOG EXT 07h, first sector
	ATASelectiveLog    Page = "ata-selective-log"     // SMART READ LOG 09h
	ATADevStats        Page = "ata-device-statistics" // READ LOG EXT 04h, pages 0..7 one after another, 8*512 bytes; missing ones zero
)

// NVMe pages (NVM Express base specification 2.0).
const (
	NVMeIdentifyController Page = "nvme-identify-controller" // 4096 bytes
	NVMeIdentifyNamespace  Page = "nvme-identify-namespace"  // 4096 bytes, of the namespace behind the device
	NVMeSmartLog           Page = "nvme-smart-log"           // log 02h, 512 bytes
	NVMeErrorLog           Page = "nvme-error-log"           // log 01h, up to 64 entries of 64 bytes
	NVMeSelfTestLog        Page = "nvme-selftest-log"        // log 06h, 564 bytes
)

// SCSI pages (SPC-5, SBC-4). LOG SENSE answers carry their 4-byte header.
const (
	SCSITestUnitReady Page = "scsi-test-unit-ready" // 3 bytes: sense key, ASC, ASCQ (all 0 when ready); ErrStandby from a stopped drive. Does not spin it up
	SCSIInquiry       Page = "scsi-inquiry"         // standard INQUIRY
	SCSIVPDSupported  Page = "scsi-vpd-00"
	SCSIVPDSerial     Page = "scsi-vpd-80"
	SCSIVPDDeviceID   Page = "scsi-vpd-83"
	SCSIVPDATA        Page = "scsi-vpd-89" // ATA information: there is an ATA drive behind a translation layer
	SCSIVPDBlockChar  Page = "scsi-vpd-b1" // rotation rate
	SCSICapacity      Page = "scsi-read-capacity-16"
	SCSILogSupported  Page = "scsi-log-00"
	SCSILogWrite      Page = "scsi-log-02"
	SCSILogRead       Page = "scsi-log-03"
	SCSILogVerify     Page = "scsi-log-05"
	SCSILogNonMedium  Page = "scsi-log-06"
	SCSILogTemp       Page = "scsi-log-0d"
	SCSILogStartStop  Page = "scsi-log-0e"
	SCSILogSelfTest   Page = "scsi-log-10"
	SCSILogSSD        Page = "scsi-log-11"
	SCSILogBackground Page = "scsi-log-15"        // background scan: power-on minutes, scan status
	SCSILogIE         Page = "scsi-log-2f"        // informational exceptions
	SCSIGrownDefects  Page = "scsi-grown-defects" // READ DEFECT DATA (12), header only
	SCSIPending       Page = "scsi-log-15-01"     // pending defects, log page 15h subpage 01h
)
