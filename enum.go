package drivebay

import "fmt"

// Every enum is a small integer whose zero value means "not known". A value that was
// never set can then not be mistaken for a good one.

// Health is the verdict on a drive. Rank gives the order, not the number: the number of
// UNKNOWN is below that of GOOD.
type Health uint8

const (
	HealthUnknown Health = iota // the drive should answer and does not, or was never asked
	HealthGood
	HealthSuspect
	HealthBad
)

// Status says whether the kernel has the drive at all. Only a complete listing of the
// machine decides it.
type Status uint8

const (
	StatusUnknown Status = iota
	StatusOnline
	StatusOffline
)

// Type is the kind of medium.
type Type uint8

const (
	TypeUnknown Type = iota
	TypeHDD
	TypeSSD
	TypeNVMe
)

// Transport is the connection between the machine and the drive.
type Transport uint8

const (
	TransportUnknown Transport = iota
	TransportNVMe
	TransportSATA
	TransportSAS
	TransportSCSI // parallel SCSI, virtio-scsi, scsi_debug, iSCSI and other SCSI without a known transport
	TransportUSB
	TransportVirtio
	TransportFC
	TransportMMC
	TransportLoop
)

// Protocol is the command set by which health is read from the drive. It is not the
// transport: a SATA drive behind a SAS controller still uses ATA.
type Protocol uint8

const (
	ProtocolNone Protocol = iota // virtio, loop: no health can be read
	ProtocolATA
	ProtocolNVMe
	ProtocolSCSI
)

// ContentKind says whose data a drive holds, if any. Unknown means that the content
// was not read; it never means blank.
type ContentKind uint8

const (
	ContentUnknown ContentKind = iota
	ContentBlank
	ContentOurs
	ContentForeign
)

// Verdict is the drive's own verdict on its health.
type Verdict uint8

const (
	VerdictUnknown Verdict = iota
	VerdictPassed
	VerdictFailed
)

// Usage is the state of a drive in its working life on this machine. It is stored, and
// changes only by Usage.Next.
type Usage uint8

const (
	UsageUnknown Usage = iota
	UsageInUse
	UsageReleasing
	UsageReleased
	UsageRemoving
	UsageRemoved
	UsageFailed
)

var (
	healthNames    = names[Health]{"health", []string{"UNKNOWN", "GOOD", "SUSPECT", "BAD"}}
	statusNames    = names[Status]{"status", []string{"UNKNOWN", "ONLINE", "OFFLINE"}}
	typeNames      = names[Type]{"type", []string{"UNKNOWN", "HDD", "SSD", "NVME"}}
	transportNames = names[Transport]{"transport", []string{"unknown", "nvme", "sata", "sas", "scsi", "usb", "virtio", "fc", "mmc", "loop"}}
	protocolNames  = names[Protocol]{"protocol", []string{"none", "ata", "nvme", "scsi"}}
	contentNames   = names[ContentKind]{"content", []string{"unknown", "blank", "ours", "foreign"}}
	verdictNames   = names[Verdict]{"verdict", []string{"UNKNOWN", "PASSED", "FAILED"}}
	usageNames     = names[Usage]{"usage", []string{"UNKNOWN", "IN_USE", "RELEASING", "RELEASED", "REMOVING", "REMOVED", "FAILED"}}
)

func (h Health) String() string      { return healthNames.text(h) }
func (s Status) String() string      { return statusNames.text(s) }
func (t Type) String() string        { return typeNames.text(t) }
func (t Transport) String() string   { return transportNames.text(t) }
func (p Protocol) String() string    { return protocolNames.text(p) }
func (c ContentKind) String() string { return contentNames.text(c) }
func (v Verdict) String() string     { return verdictNames.text(v) }
func (u Usage) String() string       { return usageNames.text(u) }

func (h Health) MarshalText() ([]byte, error)      { return []byte(h.String()), nil }
func (s Status) MarshalText() ([]byte, error)      { return []byte(s.String()), nil }
func (t Type) MarshalText() ([]byte, error)        { return []byte(t.String()), nil }
func (t Transport) MarshalText() ([]byte, error)   { return []byte(t.String()), nil }
func (p Protocol) MarshalText() ([]byte, error)    { return []byte(p.String()), nil }
func (c ContentKind) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
func (v Verdict) MarshalText() ([]byte, error)     { return []byte(v.String()), nil }
func (u Usage) MarshalText() ([]byte, error)       { return []byte(u.String()), nil }

func (h *Health) UnmarshalText(b []byte) error      { return healthNames.parse(h, b) }
func (s *Status) UnmarshalText(b []byte) error      { return statusNames.parse(s, b) }
func (t *Type) UnmarshalText(b []byte) error        { return typeNames.parse(t, b) }
func (t *Transport) UnmarshalText(b []byte) error   { return transportNames.parse(t, b) }
func (p *Protocol) UnmarshalText(b []byte) error    { return protocolNames.parse(p, b) }
func (c *ContentKind) UnmarshalText(b []byte) error { return contentNames.parse(c, b) }
func (v *Verdict) UnmarshalText(b []byte) error     { return verdictNames.parse(v, b) }
func (u *Usage) UnmarshalText(b []byte) error       { return usageNames.parse(u, b) }

// Rank returns how much attention a verdict needs; a higher number needs more. UNKNOWN
// ranks above GOOD: a drive that does not answer is not a healthy drive.
func (h Health) Rank() int {
	switch h {
	case HealthGood:
		return 0
	case HealthSuspect:
		return 2
	case HealthBad:
		return 3
	}
	return 1
}

// Worse returns the verdict that needs more attention.
func (h Health) Worse(o Health) Health {
	if o.Rank() > h.Rank() {
		return o
	}
	return h
}

// names holds the words of an enum, for printing and parsing.
type names[E ~uint8] struct {
	what  string
	words []string
}

func (n names[E]) text(e E) string {
	if int(e) < len(n.words) {
		return n.words[e]
	}
	return fmt.Sprintf("%s(%d)", n.what, e)
}

func (n names[E]) parse(into *E, b []byte) error {
	for i, w := range n.words {
		if w == string(b) {
			*into = E(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no %s: want one of %v", b, n.what, n.words)
}
