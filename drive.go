package drivebay

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Drive is one physical drive and everything known about it at one moment. It
// is a value in a Snapshot: it does not change after the Snapshot is published.
type Drive struct {
	// ID is stable across reboots, renames and slots, and is a legal DNS-1123
	// name: "naa-5000c500a1b2c3d4", "eui-...", "nguid-...", else
	// "sn-vendor-model-serial", else "path-..." with an IdentityIssue.
	ID            string `json:"id"`
	IdentityIssue string `json:"identityIssue,omitempty"` // why this drive cannot be distinguished from others

	// Copy says which other drive has a partition table or physical volume with the same
	// identity: the content does not tell which of the two is the original.
	Copy string `json:"copy,omitempty"`

	// SizeIssue says why the size of the drive cannot be right: it had more bytes before, or its partition table is of a larger drive.
	SizeIssue string `json:"sizeIssue,omitempty"`

	// Node is the node of the cluster that has the drive; empty: the drives are those of one machine.
	Node string `json:"node,omitempty"`

	Identity
	Name         string         `json:"name"`  // present kernel name, "sda"; of an NVMe drive, the name of its head
	Namespace    string         `json:"-"`     // the namespace id of an NVMe drive; "": not known
	Disks        []DiskIdentity `json:"-"`     // the kernel's block devices of the drive, one for each path
	Paths        []Path         `json:"paths"` // every path over which the kernel reaches it; several are multipath
	Type         Type           `json:"type"`
	Transport    Transport      `json:"transport"`
	Protocol     Protocol       `json:"protocol"`
	LogicalBlock int            `json:"logicalBlockSize,omitempty"`
	PhysBlock    int            `json:"physicalBlockSize,omitempty"`
	NUMANode     *int           `json:"numaNode,omitempty"` // of its controller; nil: the machine names none
	ReadOnly     bool           `json:"readOnly,omitempty"`
	Removable    bool           `json:"removable,omitempty"`

	Slot    Slot    `json:"slot"`
	System  bool    `json:"system"`
	Uses    []Use   `json:"uses,omitempty"` // what uses it now: mounts, swap, md, dm ...
	Content Content `json:"content"`

	Status   Status    `json:"status"`
	Health   Health    `json:"health"`
	Findings []Finding `json:"findings,omitempty"` // worst first; empty when GOOD
	Usage    Usage     `json:"usage"`
	Leaving  *Leaving  `json:"leaving,omitempty"` // nil while it is IN_USE
	// Succeeds names the drive that was in its bay before it, when it was new; nil: there was none.
	Succeeds *Succession `json:"succeeds,omitempty"`
	Cordoned bool        `json:"cordoned,omitempty"`
	Claim    *Claim      `json:"claim,omitempty"` // the permission to use it; nil: it must not be used

	Temperature  *int    `json:"temperature,omitempty"` // degrees Celsius
	PowerOnHours *uint64 `json:"powerOnHours,omitempty"`
	Wear         *Wear   `json:"wear,omitempty"`

	FirstSeen time.Time `json:"firstSeen"`
	LastSeen  time.Time `json:"lastSeen"`

	Denied   bool         `json:"denied,omitempty"`   // the daemon lacks the permission to open it
	SelfTest *RunningTest `json:"selfTest,omitempty"` // in progress at the last reading; nil: none was
	Evidence *Evidence    `json:"evidence,omitempty"` // what was last read from the drive itself
	Kernel   *Kernel      `json:"kernel,omitempty"`   // what the kernel knows of it, read without access to the drive
}

// Identity is what a drive reports about itself. Strings are trimmed, valid UTF-8.
type Identity struct {
	Vendor   string `json:"vendor,omitempty"`
	Model    string `json:"model,omitempty"`
	Serial   string `json:"serial,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	WWN      string `json:"wwn,omitempty"`  // "naa.5000...", "eui.0025...", "uuid...." as the kernel's wwid writes it
	Size     uint64 `json:"size,omitempty"` // bytes
	RPM      int    `json:"rpm,omitempty"`  // 0 unknown or solid state
}

// Path is one connection to a drive.
type Path struct {
	Name    string `json:"name"`              // "sda", or the hidden NVMe path "nvme0c0n1"
	Dev     string `json:"dev,omitempty"`     // "/dev/sda"; empty for hidden paths
	DevNum  string `json:"devnum,omitempty"`  // "8:0"
	Address string `json:"address,omitempty"` // SCSI H:C:T:L, or PCI address of the NVMe controller
	SysPath string `json:"syspath,omitempty"` // canonical folder below the machine's root, "sys/devices/..."
	State   string `json:"state,omitempty"`   // running, offline, live, dead ...
}

// DiskIdentity is one block device, told apart from all others that have or had its name.
type DiskIdentity struct {
	DevNum  string `json:"devnum"` // "8:0"
	SysPath string `json:"syspath"`
	// Seq is the boot id and the number that the kernel gives to each disk that appears,
	// never twice (Documentation/ABI/stable/sysfs-block, diskseq, since Linux 5.15);
	// empty where the kernel gives none.
	Seq string `json:"seq,omitempty"`
}

// Slot is the physical place of a drive.
type Slot struct {
	Enclosure string `json:"enclosure,omitempty"` // id of the enclosure; empty for a PCI slot
	Bay       string `json:"bay,omitempty"`       // name of the bay, as the enclosure reports it
	Locate    string `json:"locate,omitempty"`    // file below the machine's root for the locate LED; empty: no LED
	Fault     string `json:"fault,omitempty"`     // file that switches the fault LED
	Lit       bool   `json:"lit,omitempty"`
	FaultLit  bool   `json:"faultLit,omitempty"`
	Status    string `json:"status,omitempty"` // state of the bay in the kernel's words: OK, not installed, critical ...
}

// Use is one user of the drive: it has the drive open or would fail without it.
type Use struct {
	Kind   string `json:"kind"`             // mount, swap, md, lvm, crypt, dm, btrfs, zfs, partition, multipath
	Device string `json:"device,omitempty"` // "sda2", "dm-0"
	What   string `json:"what,omitempty"`   // mount point, md name, volume group/logical volume
	Ours   bool   `json:"ours,omitempty"`   // a partition that drivebay made, or a device on top of one
}

// Content is what is written on the drive.
type Content struct {
	Kind       ContentKind `json:"kind"`
	Signatures []Signature `json:"signatures,omitempty"`
	Reason     string      `json:"reason,omitempty"` // why the content is unknown or foreign
	// Beyond says how far the partition table reaches beyond the end of the drive; empty
	// when it does not.
	Beyond string `json:"beyond,omitempty"`
	// TableSum is the checksum of the entries of the GUID partition table, 0 when both copies are damaged.
	TableSum    uint32 `json:"-"`
	TableDamage string `json:"-"` // what of that table is damaged while one copy is sound
}

// NotRead is the Reason of a Content that was never read.
const NotRead = "not read"

// Signature is one recognized format on a drive or one of its partitions.
type Signature struct {
	Format    string `json:"format"` // gpt, mbr, ext4, xfs, LVM2_member, linux_raid_member, crypto_LUKS ...
	Label     string `json:"label,omitempty"`
	UUID      string `json:"uuid,omitempty"`
	Partition string `json:"partition,omitempty"` // "" for the whole drive, else "1", "2" ...
	Name      string `json:"name,omitempty"`      // of the partition, as the GPT has it
	Offset    uint64 `json:"offset"`
}

// Finding is one reason for a verdict, with its evidence as text.
type Finding struct {
	Code     string    `json:"code"`     // row of the rule table, "ATAReallocatedSectors"
	Severity Health    `json:"severity"` // SUSPECT, BAD or UNKNOWN
	Text     string    `json:"text"`     // "Reallocated_Sector_Ct 1176, +24 in 7 days"
	Advice   string    `json:"advice,omitempty"`
	Level    uint64    `json:"level,omitempty"` // the number that was judged, where there is one
	Since    time.Time `json:"since,omitzero"`
	Gone     time.Time `json:"gone,omitzero"` // since when the cause is gone; the finding stays for some time
}

// Wear is how much of a solid-state drive is used up.
type Wear struct {
	PercentUsed   int      `json:"percentUsed"`             // 0..255, 100 is the rated endurance
	DaysLeft      *float64 `json:"daysLeft,omitempty"`      // nil: not enough history
	BytesPerDay   *uint64  `json:"bytesPerDay,omitempty"`   // written by the host
	TotalWritten  *uint64  `json:"totalWritten,omitempty"`  // bytes
	ForecastBasis string   `json:"forecastBasis,omitempty"` // "3 % in 41 days", the basis of the forecast
}

// WorstOf returns the verdict that follows from a set of findings.
func WorstOf(findings []Finding) Health {
	worst := HealthGood
	for _, f := range findings {
		worst = worst.Worse(f.Severity)
	}
	return worst
}

// SortFindings sorts findings, worst first, then by code: the order stays the same from
// tick to tick.
func SortFindings(f []Finding) {
	slices.SortStableFunc(f, func(a, b Finding) int {
		if c := cmp.Compare(b.Severity.Rank(), a.Severity.Rank()); c != 0 {
			return c
		}
		return strings.Compare(a.Code, b.Code)
	})
}
