package drivebay

import (
	"cmp"
	"fmt"
)

// StorageFinding is a condition of a machine's storage that concerns more than one
// volume: a scheduler should know it before it places a pod there.
type StorageFinding struct {
	Unreachable bool   `json:"unreachable,omitempty"` // no storage can be reached; else it is degraded
	Reason      string `json:"reason"`                // CamelCase, one of the Reason constants below
	Message     string `json:"message"`
}

// The reasons, named as KEP-1432 names those of volumes.
const (
	StorageDiskFailure   = "DiskFailure"
	StorageDiskDegrading = "DiskDegrading"
	StorageDiskRemoved   = "DiskRemoved"
	StorageDiskUnknown   = "HealthUnknown"
	StorageConfigError   = "ConfigError"
	StorageNotObserved   = "StorageNotObserved"
)

// StorageFindings returns what is wrong with the claimed drives, the only ones that may
// hold volumes; a scheduler needs no others. It has one finding for each reason, whose
// message names the drives.
func StorageFindings(s *Snapshot) []StorageFinding {
	var out []StorageFinding
	if !s.Complete {
		out = append(out, StorageFinding{Reason: StorageNotObserved, Message: message("the list of drives is incomplete: ", s.Problems)})
	}
	claimed, reached := 0, 0
	byReason := map[string][]string{}
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Claim == nil {
			continue
		}
		claimed++
		if d.Status != StatusOffline && (d.Kernel == nil || !d.Kernel.GivenUp()) {
			reached++
		}
		if reason := d.storageReason(); reason != "" {
			byReason[reason] = append(byReason[reason], d.person())
		}
	}
	for _, reason := range []string{StorageDiskRemoved, StorageDiskFailure, StorageConfigError, StorageDiskDegrading, StorageDiskUnknown} {
		if names := byReason[reason]; len(names) > 0 {
			out = append(out, StorageFinding{Unreachable: reached == 0 && (reason == StorageDiskRemoved || reason == StorageDiskFailure), Reason: reason,
				Message: message(fmt.Sprintf("%d of %d drives %s: ", len(names), claimed, storageWords[reason]), names)})
		}
	}
	return out
}

// storageWords holds the text of each reason for a message.
var storageWords = map[string]string{StorageDiskRemoved: "absent", StorageDiskFailure: "BAD", StorageDiskDegrading: "SUSPECT", StorageDiskUnknown: "of unknown health",
	StorageConfigError: "not written to"}

func (d *Drive) storageReason() string {
	switch {
	case d.Status == StatusOffline:
		return StorageDiskRemoved
	case d.Health == HealthBad:
		return StorageDiskFailure
	case d.Unusable() != "":
		return StorageConfigError
	case d.Health == HealthSuspect:
		return StorageDiskDegrading
	case d.Health == HealthUnknown || d.Status == StatusUnknown: // its health is from when it was there
		return StorageDiskUnknown
	}
	return ""
}

// NotWritten returns why a drive that is here takes no writes, "" if it does. Its health does not show that, the volumes on it do.
func (d *Drive) NotWritten() string {
	if d.ReadOnly {
		return "it is write-protected"
	}
	return cmp.Or(d.Copy, d.IdentityIssue, d.SizeIssue)
}

// Unusable returns why a claimed drive that is here gets no new volumes although its health does not show it and no operator keeps them off,
// "" if nothing does. Of foreign content only what was read counts: the kernel may show a new partition before its name.
func (d *Drive) Unusable() string {
	if d.Claim == nil || d.Status == StatusOffline {
		return ""
	}
	if why := d.NotWritten(); why != "" {
		return why
	}
	if d.Status == StatusOnline && d.Usage == UsageInUse && d.Content.Kind == ContentForeign && len(d.Content.Signatures) > 0 {
		return d.Content.refusal()
	}
	return ""
}

// person describes a drive for an operator at the machine, with its worst finding.
func (d *Drive) person() string {
	text := d.Name
	if d.Serial != "" {
		text += " (serial " + d.Serial + ")"
	}
	if d.Slot.Bay != "" {
		text += " in bay " + d.Slot.Bay
	}
	if why := d.Unusable(); why != "" {
		return text + ": " + why
	}
	if len(d.Findings) > 0 {
		text += ": " + d.Findings[0].Text
	}
	return text
}

// message joins parts, and replaces those that do not fit by their number.
func message(head string, parts []string) string {
	text := head
	for i, p := range parts {
		if p = PlainText(p, MaxConditionText); i > 0 {
			p = "; " + p
		}
		more := fmt.Sprintf("; and %d more", len(parts)-i)
		if len(text)+len(p)+len(more) > MaxConditionMessage {
			return text + more
		}
		text += p
	}
	return text
}
