package drivebay

// VolumeMode is how a volume is presented to pods.
type VolumeMode uint8

const (
	ModeUnknown VolumeMode = iota
	ModeFS                 // a mounted filesystem
	ModeRaw                // a block device: a whole drive or a logical volume
	ModeRawPart            // a block device: a partition
)

// LocationKind is what a volume is made of.
type LocationKind uint8

const (
	LocationUnknown   LocationKind = iota
	LocationDrive                  // a whole drive
	LocationPartition              // a GPT partition
	LocationLVM                    // a linear logical volume
	LocationThin                   // a thin logical volume
	LocationMirror                 // a raid1 logical volume: one copy on each of its drives
)

// OperationalStatus is whether a volume can be used now. condition.OperationalStatusOf
// derives it in every tick; nothing else sets it.
type OperationalStatus uint8

const (
	OperationalUnknown OperationalStatus = iota
	Operative                            // serves
	Inoperative                          // exists and cannot be used as requested
	OperationalStaging                   // is being created
	Maintenance                          // can be used while it is grown or moved off its drive
	Missing                              // its drive, partition or logical volume is gone
	OperationalRemoving
	OperationalRemoved
)

// Severity is how much a finding impairs a volume. The numbers are those of
// VolumeHealthErrorType in the CSI specification, v1.13.0.
type Severity uint8

const (
	SeverityNone Severity = iota
	SeverityDegraded
	SeverityInaccessible
	SeverityDataLoss
)

// RetryRule says what starts the next try after a failure.
type RetryRule uint8

const (
	RetryUnknown  RetryRule = iota
	RetryOnCall             // the orchestrator's next call
	RetryTimed              // the daemon, at Failure.Next
	RetryOperator           // only a command of an operator
)

var (
	volumeModeNames   = names[VolumeMode]{"volume mode", []string{"UNKNOWN", "FS", "RAW", "RAW_PART"}}
	locationNames     = names[LocationKind]{"location", []string{"UNKNOWN", "DRIVE", "PARTITION", "LVM", "LVM_THIN", "LVM_MIRROR"}}
	operationalNames  = names[OperationalStatus]{"operational status", []string{"UNKNOWN", "OPERATIVE", "INOPERATIVE", "STAGING", "MAINTENANCE", "MISSING", "REMOVING", "REMOVED"}}
	severityNames     = names[Severity]{"severity", []string{"NONE", "DEGRADED", "INACCESSIBLE", "DATA_LOSS"}}
	accessNames       = names[Access]{"access", []string{"UNKNOWN", "WRITER", "READER", "SINGLE_WRITER", "MULTI_WRITER"}}
	retryNames        = names[RetryRule]{"retry rule", []string{"UNKNOWN", "ON_CALL", "TIMED", "OPERATOR"}}
	csiStatusNames    = names[CSIStatus]{"CSI status", []string{"UNKNOWN", "CREATING", "CREATED", "VOLUME_READY", "PUBLISHED", "RESIZING", "RESIZED", "REMOVING", "REMOVED", "FAILED"}}
	volumeUsageNames  = names[VolumeUsage]{"volume usage", []string{"UNKNOWN", "IN_USE", "RELEASING", "RELEASED", "FAILED"}}
	csiEventNames     = names[CSIEvent]{"CSI event", []string{"none", "create", "found", "done", "stage", "unstage", "publish", "unpublish", "resize", "remove", "fail", "clear"}}
	volumeUsageEvents = names[VolumeUsageEvent]{"volume usage event", []string{"none", "made", "release", "moved", "let go", "fail", "retry", "keep"}}
)

func (m VolumeMode) String() string        { return volumeModeNames.text(m) }
func (k LocationKind) String() string      { return locationNames.text(k) }
func (s OperationalStatus) String() string { return operationalNames.text(s) }
func (s Severity) String() string          { return severityNames.text(s) }
func (a Access) String() string            { return accessNames.text(a) }
func (r RetryRule) String() string         { return retryNames.text(r) }
func (s CSIStatus) String() string         { return csiStatusNames.text(s) }
func (u VolumeUsage) String() string       { return volumeUsageNames.text(u) }
func (e CSIEvent) String() string          { return csiEventNames.text(e) }
func (e VolumeUsageEvent) String() string  { return volumeUsageEvents.text(e) }

func (m VolumeMode) MarshalText() ([]byte, error)        { return []byte(m.String()), nil }
func (k LocationKind) MarshalText() ([]byte, error)      { return []byte(k.String()), nil }
func (s OperationalStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (s Severity) MarshalText() ([]byte, error)          { return []byte(s.String()), nil }
func (a Access) MarshalText() ([]byte, error)            { return []byte(a.String()), nil }
func (r RetryRule) MarshalText() ([]byte, error)         { return []byte(r.String()), nil }
func (s CSIStatus) MarshalText() ([]byte, error)         { return []byte(s.String()), nil }
func (u VolumeUsage) MarshalText() ([]byte, error)       { return []byte(u.String()), nil }

func (m *VolumeMode) UnmarshalText(b []byte) error        { return volumeModeNames.parse(m, b) }
func (k *LocationKind) UnmarshalText(b []byte) error      { return locationNames.parse(k, b) }
func (s *OperationalStatus) UnmarshalText(b []byte) error { return operationalNames.parse(s, b) }
func (s *Severity) UnmarshalText(b []byte) error          { return severityNames.parse(s, b) }
func (a *Access) UnmarshalText(b []byte) error            { return accessNames.parse(a, b) }
func (r *RetryRule) UnmarshalText(b []byte) error         { return retryNames.parse(r, b) }
func (s *CSIStatus) UnmarshalText(b []byte) error         { return csiStatusNames.parse(s, b) }
func (u *VolumeUsage) UnmarshalText(b []byte) error       { return volumeUsageNames.parse(u, b) }
