package drivebay

import "time"

// Evidence is what was read from a drive at one time, decoded and not judged yet. A nil
// part was not read; Problems say which reads failed.
type Evidence struct {
	At       time.Time `json:"at"`
	Source   string    `json:"source"` // "drive", "smartctl 7.4", "ata blocks"
	Protocol Protocol  `json:"protocol"`
	Type     Type      `json:"type,omitempty"`
	Identity Identity  `json:"identity"`

	Verdict      Verdict `json:"verdict"`
	Standby      bool    `json:"standby,omitempty"`     // the drive slept and was not woken: the rest is old or absent
	Temperature  *int    `json:"temperature,omitempty"` // degrees Celsius
	PowerOnHours *uint64 `json:"powerOnHours,omitempty"`
	PowerCycles  *uint64 `json:"powerCycles,omitempty"`
	PercentUsed  *int    `json:"percentUsed,omitempty"` // endurance, 0..255
	BytesWritten *uint64 `json:"bytesWritten,omitempty"`
	BytesRead    *uint64 `json:"bytesRead,omitempty"`

	ATA       *ATA       `json:"ata,omitempty"`
	NVMe      *NVMe      `json:"nvme,omitempty"`
	SCSI      *SCSI      `json:"scsi,omitempty"`
	SelfTests []SelfTest `json:"selfTests,omitempty"` // newest first; a running one is in SelfTestProgress
	// SelfTestProgress is the percentage that remains of a running self-test.
	SelfTestProgress *int `json:"selfTestRemaining,omitempty"`
	// SelfTestKind is the kind of the running self-test: as the drive reports it, else as the daemon
	// started it; "": not known.
	SelfTestKind string `json:"selfTestKind,omitempty"`

	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a page that was requested and cannot be used.
type Problem struct {
	Page string `json:"page"` // "ata-smart-data"; "" for the document as a whole
	Text string `json:"text"`
	// Expected is true if the drive does not claim to support the page: no fault.
	Expected bool `json:"expected,omitempty"`
	// Lost is true if the page has evidence of health that cannot be decoded: a verdict without it
	// would be one on the rest.
	Lost bool `json:"lost,omitempty"`
}

// ATA is the health data of an ATA drive.
type ATA struct {
	SMARTSupported bool        `json:"smartSupported"`
	SMARTEnabled   bool        `json:"smartEnabled"`
	LogicalSector  uint64      `json:"logicalSector,omitempty"` // bytes; the unit of the drive's sector counts. 0 unknown
	Attributes     []Attribute `json:"attributes,omitempty"`
	Statistics     []Statistic `json:"statistics,omitempty"`     // device statistics log
	PendingDefects *uint64     `json:"pendingDefects,omitempty"` // entries of the pending defects log
	ErrorCount     *uint64     `json:"errorCount,omitempty"`     // of the drive's own error log, over its whole life
	Errors         []DriveLog  `json:"errors,omitempty"`         // newest first
	// SelectiveSpans are the spans that the selective self-test log names, unless one of them is under
	// test or was left unfinished. They belong to the last selective test that was started. The log is read
	// from drives only if a selective test passed after another test failed.
	SelectiveSpans []Span `json:"selectiveSpans,omitempty"`
}

// Span is a range of logical blocks; both ends are part of it.
type Span struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Attribute is one row of the ATA SMART table.
type Attribute struct {
	ID         uint8  `json:"id"`
	Name       string `json:"name"`
	Value      uint8  `json:"value"`
	Worst      uint8  `json:"worst"`
	Threshold  *uint8 `json:"threshold,omitempty"` // nil: not known
	Prefail    bool   `json:"prefail"`
	FailedNow  bool   `json:"failedNow,omitempty"`
	FailedPast bool   `json:"failedPast,omitempty"`
	NoValue    bool   `json:"noValue,omitempty"` // the document has no normalized value
	Raw        uint64 `json:"raw"`               // the 48 raw bits
	Count      uint64 `json:"count"`             // the raw bits as a number, by the vendor's format
	Text       string `json:"text"`              // the raw bits as text for people
}

// Statistic is one entry of the ATA device statistics log.
type Statistic struct {
	Page       uint8  `json:"page"`
	Offset     uint16 `json:"offset"`
	Name       string `json:"name"`
	Value      int64  `json:"value"`
	Normalized bool   `json:"normalized,omitempty"`
}

// NVMe is the SMART / health information log (log page 02h) and related values.
// A 128-bit counter that does not fit has the largest uint64.
type NVMe struct {
	CriticalWarning   uint8      `json:"criticalWarning"`
	AvailableSpare    uint8      `json:"availableSpare"`
	SpareThreshold    uint8      `json:"spareThreshold"`
	PercentageUsed    uint8      `json:"percentageUsed"`
	DataUnitsRead     uint64     `json:"dataUnitsRead"` // thousands of 512-byte units
	DataUnitsWritten  uint64     `json:"dataUnitsWritten"`
	HostReads         uint64     `json:"hostReads"`
	HostWrites        uint64     `json:"hostWrites"`
	BusyMinutes       uint64     `json:"busyMinutes"`
	PowerCycles       uint64     `json:"powerCycles"`
	PowerOnHours      uint64     `json:"powerOnHours"`
	UnsafeShutdowns   uint64     `json:"unsafeShutdowns"`
	MediaErrors       uint64     `json:"mediaErrors"`
	ErrorLogEntries   uint64     `json:"errorLogEntries"`
	WarningTempTime   uint32     `json:"warningTempMinutes"`
	CriticalTempTime  uint32     `json:"criticalTempMinutes"`
	TemperatureKelvin uint16     `json:"temperatureKelvin"`
	Errors            []DriveLog `json:"errors,omitempty"`
	// WarningTemp and CriticalTemp are the limits that Identify reports, in Celsius; 0 unknown.
	WarningTemp  int `json:"warningTemp,omitempty"`
	CriticalTemp int `json:"criticalTemp,omitempty"`
}

// SCSI is the health data of a SAS or other SCSI drive, from its log pages.
type SCSI struct {
	ASC             uint8                   `json:"asc"` // informational exceptions: 0x5D is a failure prediction
	ASCQ            uint8                   `json:"ascq"`
	HasIE           bool                    `json:"hasIE"`            // the informational exceptions page was read
	ErrorCounters   map[string]ErrorCounter `json:"errors,omitempty"` // read, write, verify
	NonMedium       *uint64                 `json:"nonMedium,omitempty"`
	GrownDefects    *uint64                 `json:"grownDefects,omitempty"`
	PendingDefects  *uint64                 `json:"pendingDefects,omitempty"`
	BackgroundScan  *uint8                  `json:"backgroundScan,omitempty"` // status code of log page 15h
	TripTemperature *int                    `json:"tripTemperature,omitempty"`
	StartStops      *uint64                 `json:"startStops,omitempty"`
}

// ErrorCounter is one SCSI error counter log page.
type ErrorCounter struct {
	CorrectedFast    uint64 `json:"correctedFast"`
	CorrectedDelayed uint64 `json:"correctedDelayed"`
	Rereads          uint64 `json:"rereads"`
	Corrected        uint64 `json:"corrected"`
	Invocations      uint64 `json:"invocations"`
	Bytes            uint64 `json:"bytes"`
	Uncorrected      uint64 `json:"uncorrected"`
}

// Kinds of entries in a drive's own error log that rules tell apart.
const (
	LogUncorrectable = "uncorrectable" // the drive could not read data (ATA: UNC)
	LogLink          = "link"          // data were damaged between drive and host (ATA: ICRC)
)

// DriveLog is one entry of a drive's own error log.
type DriveLog struct {
	Kind   string `json:"kind,omitempty"` // LogUncorrectable, LogLink; "": anything else
	Number uint64 `json:"number,omitempty"`
	Hours  uint64 `json:"hours,omitempty"` // power-on hours when it happened; 0 unknown
	LBA    uint64 `json:"lba,omitempty"`
	Text   string `json:"text"`
}

// SelfTestResult is how a self-test ended.
type SelfTestResult uint8

const (
	SelfTestUnknown SelfTestResult = iota
	SelfTestPassed
	SelfTestAborted // by the host or a reset: no information about the drive
	SelfTestFailed  // read, servo, electrical or another failure of the drive
	SelfTestFatal   // the drive could not complete it and reports no reason
	SelfTestRunning
)

var selfTestNames = names[SelfTestResult]{"self-test result", []string{"unknown", "passed", "aborted", "failed", "fatal", "running"}}

func (r SelfTestResult) String() string                { return selfTestNames.text(r) }
func (r SelfTestResult) MarshalText() ([]byte, error)  { return []byte(r.String()), nil }
func (r *SelfTestResult) UnmarshalText(b []byte) error { return selfTestNames.parse(r, b) }

// SelfTest is one entry of a drive's self-test log.
type SelfTest struct {
	Kind   string         `json:"kind"` // short, long, conveyance, selective, other
	Result SelfTestResult `json:"result"`
	Text   string         `json:"text"`
	Hours  uint64         `json:"hours"` // power-on hours when it ended
	LBA    *uint64        `json:"lba,omitempty"`
	// ShortLBA: the log has room for 32 bits of the address. On a drive of more blocks the address may
	// be another one.
	ShortLBA bool `json:"shortLBA,omitempty"`
}

// RunningTest is a self-test in progress.
type RunningTest struct {
	Kind string `json:"kind,omitempty"` // short, long, conveyance, selective, other; "": not known
	Done *int   `json:"done,omitempty"` // percent; nil: the drive does not report it
}

// RunningTest returns the self-test that was in progress when the evidence was read; nil: none was.
func (e *Evidence) RunningTest() *RunningTest {
	if e == nil || e.Standby { // the rest of the evidence is old then, and a drive that tests itself does not sleep
		return nil
	}
	run := RunningTest{Kind: e.SelfTestKind}
	logged := len(e.SelfTests) > 0 && e.SelfTests[0].Result == SelfTestRunning
	if logged {
		run.Kind = e.SelfTests[0].Kind
	}
	if e.SelfTestProgress != nil {
		done := 100 - *e.SelfTestProgress
		run.Done = &done
	}
	if !logged && run.Done == nil {
		return nil
	}
	return &run
}

// Kernel is what the kernel knows of a drive; reading it causes no access to the drive.
type Kernel struct {
	At       time.Time `json:"at"`
	State    string    `json:"state,omitempty"`    // device state; for NVMe the best of its controllers
	SizeZero bool      `json:"sizeZero,omitempty"` // the kernel holds the device at 0 bytes
	// Zero is for how long it has done so. A drive that just appears has no size for a
	// moment: until READ CAPACITY is answered, or a unit attention makes the kernel
	// ask again.
	Zero       time.Duration `json:"zero,omitempty"`
	IOErrors   *uint64       `json:"ioErrors,omitempty"`   // ioerr_cnt: judge its growth, it is not 0 on healthy drives
	IOTimeouts *uint64       `json:"ioTimeouts,omitempty"` // iotmo_cnt: no answer in time; on SATA also failed commands
	IODone     *uint64       `json:"ioDone,omitempty"`
	Inflight   uint64        `json:"inflight"`
	Completed  uint64        `json:"completed"` // reads+writes+discards+flushes that completed
	Changed    uint64        `json:"-"`         // writes and discards of those
	Waited     uint64        `json:"-"`         // milliseconds that all of those took together
	// Frozen is for how long requests have waited while none completed.
	Frozen time.Duration `json:"frozen,omitempty"`
	// LaneStuck is for how long the daemon's own request to the drive has had no answer.
	LaneStuck time.Duration `json:"laneStuck,omitempty"`
	OpenError string        `json:"openError,omitempty"` // "no such device or address"

	MediaErrors24h uint64 `json:"mediaErrors24h,omitempty"` // distinct sectors in the kernel log
	OtherErrors24h uint64 `json:"otherErrors24h,omitempty"`
	LeftErrors     uint64 `json:"leftErrors,omitempty"` // of those, what came because the drive left, as far as no reading showed another cause
	// UnresolvedErrors counts those whose cause is not proved gone. BadSectors are the sectors (of 512 bytes) with a medium error and no good read since.
	UnresolvedErrors uint64    `json:"unresolvedErrors,omitempty"`
	BadSectors       []uint64  `json:"badSectors,omitempty"`
	Resets1h         uint64    `json:"resets1h,omitempty"`
	LastLog          string    `json:"lastLog,omitempty"`
	Filesystems      []FSError `json:"filesystems,omitempty"`
}

// GivenUp reports whether the kernel has stopped sending requests to the drive.
func (k *Kernel) GivenUp() bool { return k.Dead() || k.NoSize() }

// Dead reports whether the kernel has given up the drive itself: a drive without a medium has no size either.
func (k *Kernel) Dead() bool {
	return k.State == "offline" || k.State == "transport-offline" || k.State == "dead"
}

// NoSize reports whether the kernel holds the device at 0 bytes, and not only for the
// moment in which a drive appears.
func (k *Kernel) NoSize() bool { return k.SizeZero && k.Zero >= time.Second }

// FSError is a filesystem's own count of its errors on this drive.
type FSError struct {
	Device   string `json:"device"` // "sda1", "dm-3"
	FS       string `json:"fs"`
	Errors   uint64 `json:"errors"`
	Warnings uint64 `json:"warnings,omitempty"` // read only if there are errors
}

// Sample holds the counters at one time, kept so that growth can be judged.
type Sample struct {
	At       time.Time         `json:"at"`
	Counters map[string]uint64 `json:"counters"`
}
