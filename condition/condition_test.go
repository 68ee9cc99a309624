package condition

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

func ptr[T any](v T) *T { return &v }

func soundDrive(n int) drivebay.Drive {
	return drivebay.Drive{ID: fmt.Sprintf("naa-%d", n), Identity: drivebay.Identity{Serial: fmt.Sprintf("SER%d", n)}, Slot: drivebay.Slot{Bay: fmt.Sprintf("bay-%d", n)},
		Status: drivebay.StatusOnline, Health: drivebay.HealthGood, Usage: drivebay.UsageInUse,
		Paths: []drivebay.Path{{Name: "sda", State: "running"}, {Name: "sdb", State: "running"}}, Kernel: &drivebay.Kernel{State: "running"}}
}

// sound is a published volume on which everything was looked at and is well.
func sound(kind drivebay.LocationKind) drivebay.Facts {
	drives := []drivebay.Drive{soundDrive(1)}
	if kind == drivebay.LocationMirror {
		drives = append(drives, soundDrive(2))
	}
	f := drivebay.Facts{
		Volume: drivebay.Volume{ID: "pvc-1", Node: "node-1", Size: 1 << 30, Mode: drivebay.ModeFS, FSType: "ext4", Location: drivebay.Location{Kind: kind, VG: "vg", LV: "lv", Pool: "pool"},
			Health: drivebay.HealthGood, CSIStatus: drivebay.CSIPublished, OperationalStatus: drivebay.Operative, Usage: drivebay.VolumeInUse,
			Publications: []drivebay.Publication{{Path: "/staging", Staging: true}, {Path: "/target"}}},
		Drives: drives, Complete: true,
		LV:    &drivebay.LVFacts{DataPercent: ptr(50.0), MetadataPercent: ptr(5.0), SyncPercent: ptr(100.0)},
		FS:    &drivebay.FSFacts{Bytes: ptr(uint64(1000)), Free: ptr(uint64(900)), Inodes: ptr(uint64(1000)), FreeInodes: ptr(uint64(900)), Scrub: &drivebay.Scrub{Mounted: true, At: time.Unix(1e9, 0)}},
		IO:    &drivebay.IOFacts{Await: time.Millisecond},
		Mount: &drivebay.MountFacts{Staging: &drivebay.PathFacts{Path: "/staging", Mounted: true}, Target: &drivebay.PathFacts{Path: "/target", Mounted: true}},
	}
	for _, d := range drives {
		f.Volume.Location.Drives = append(f.Volume.Location.Drives, d.ID)
	}
	return f
}

var kinds = []drivebay.LocationKind{drivebay.LocationDrive, drivebay.LocationPartition, drivebay.LocationLVM, drivebay.LocationThin, drivebay.LocationMirror}

func failing(v *drivebay.Volume, before drivebay.CSIStatus) {
	v.CSIStatus, v.Failure = drivebay.CSIFailed, &drivebay.Failure[drivebay.CSIStatus]{Before: before, Cause: "no space", Tries: 2, Retry: drivebay.RetryOnCall}
}

// faults are what can go wrong. Each only ever makes things worse, so that they
// can be piled up; alone on its kind of volume it is exactly the finding wanted.
var faults = []struct {
	name   string
	on     drivebay.LocationKind
	fault  func(*drivebay.Facts)
	want   drivebay.Severity
	reason string
	says   string
}{
	{"drive pulled", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Status = drivebay.StatusOffline }, drivebay.SeverityInaccessible, "DiskRemoved", "serial SER1, bay bay-1"},
	{"drive not listed", drivebay.LocationLVM, func(f *drivebay.Facts) { f.Drives[0].ID = "naa-other" }, drivebay.SeverityInaccessible, "DiskRemoved", "drive naa-1, serial unknown"},
	{"leg pulled", drivebay.LocationMirror, func(f *drivebay.Facts) { f.Drives[len(f.Drives)-1].Status = drivebay.StatusOffline }, drivebay.SeverityDegraded, "DiskRemoved", "drive naa-2, serial SER2, bay bay-2"},
	{"drive offlined by the kernel", drivebay.LocationDrive, func(f *drivebay.Facts) { f.Drives[0].Kernel.State = "offline" }, drivebay.SeverityInaccessible, "DiskFailure", "given up the drive"},
	{"drive at 0 bytes", drivebay.LocationDrive, func(f *drivebay.Facts) { f.Drives[0].Kernel.SizeZero, f.Drives[0].Kernel.Zero = true, 2*time.Second }, drivebay.SeverityInaccessible, "DiskFailure", "given up the drive"},
	{"drive BAD", drivebay.LocationPartition, func(f *drivebay.Facts) {
		f.Drives[0].Health, f.Drives[0].Findings = drivebay.HealthBad, []drivebay.Finding{{Text: "1176 sectors"}}
	}, drivebay.SeverityDegraded, "DiskFailure", "1176 sectors"},
	{"leg BAD", drivebay.LocationMirror, func(f *drivebay.Facts) { f.Drives[0].Health = drivebay.HealthBad }, drivebay.SeverityDegraded, "DiskFailure", "serial SER1"},
	{"leg offlined", drivebay.LocationMirror, func(f *drivebay.Facts) { f.Drives[len(f.Drives)-1].Kernel.State = "dead" }, drivebay.SeverityDegraded, "DiskFailure", "serial SER2"},
	{"drive SUSPECT", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Health = f.Drives[0].Health.Worse(drivebay.HealthSuspect) }, drivebay.SeverityDegraded, "DiskDegrading", "SER1"},
	{"drive UNKNOWN", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Health = f.Drives[0].Health.Worse(drivebay.HealthUnknown) }, drivebay.SeverityDegraded, "HealthUnknown", "SER1"},
	{"drive unplaced", drivebay.LocationPartition, func(f *drivebay.Facts) {
		if f.Drives[0].Status == drivebay.StatusOnline {
			f.Drives[0].Status = drivebay.StatusUnknown
		}
	}, drivebay.SeverityDegraded, "HealthUnknown", "SER1"},
	{"twin drive", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].IdentityIssue = "like naa-9" }, drivebay.SeverityDegraded, "IdentityConflict", "like naa-9"},
	{"shrank", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].SizeIssue = "it has 1 bytes and had 2" }, drivebay.SeverityDegraded, "DriveShrank", "it has 1 bytes and had 2"},
	{"layout", drivebay.LocationPartition, func(f *drivebay.Facts) {
		f.Layouts = map[string]string{f.Drives[0].ID: "the kernel does not have partition 2 of the partition table"}
	}, drivebay.SeverityDegraded, "LayoutUnknown", "does not have partition 2"},
	{"half a table", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Content.TableDamage = "its backup is damaged" }, drivebay.SeverityDegraded, "PartitionTableDamaged", "its backup is damaged"},
	{"quarantined", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Usage = drivebay.UsageRemoved }, drivebay.SeverityDegraded, "DriveQuarantined", "was removed and is back"},
	{"copied", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Copy = "drive naa-9 has the same partition table" }, drivebay.SeverityDegraded, "DriveCopied", "drive naa-9 has the same"},
	{"mirror on one device", drivebay.LocationMirror, func(f *drivebay.Facts) {
		if !f.Volume.Location.Mirrored() {
			f.Drives[0].Copy = "drive naa-9 has the same partition table" // here it is a fault as well
		}
		for i := range f.Drives {
			f.Drives[i].Transport, f.Drives[i].Paths[0].Address = drivebay.TransportNVMe, "0000:01:00.0"
		}
	}, drivebay.SeverityDegraded, "MirrorOnOneDevice", "units of one device"},
	{"write-protected", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].ReadOnly = true }, drivebay.SeverityInaccessible, "ConfigError", "write-protected"},
	{"leg write-protected", drivebay.LocationMirror, func(f *drivebay.Facts) { f.Drives[0].ReadOnly = true }, drivebay.SeverityDegraded, "ConfigError", "serial SER1"},
	{"path down", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Paths[1].State = "offline" }, drivebay.SeverityDegraded, "NetworkError", "sdb is offline"},
	{"PV missing", drivebay.LocationLVM, func(f *drivebay.Facts) { f.LV.MissingPVs = []string{"uuid-1", "uuid-2"} }, drivebay.SeverityInaccessible, "PhysicalVolumeMissing", "uuid-1"},
	{"PV of a leg missing", drivebay.LocationMirror, func(f *drivebay.Facts) {
		if len(f.LV.MissingPVs) == 0 {
			f.LV.MissingPVs = []string{"uuid-1"}
		}
	}, drivebay.SeverityDegraded, "PhysicalVolumeMissing", "uuid-1"},
	{"PV unreadable", drivebay.LocationLVM, func(f *drivebay.Facts) {
		f.LV.Unreadable, f.LV.InUse = map[string]string{"naa-1": "no label"}, false
	}, drivebay.SeverityInaccessible, "PhysicalVolumeUnreadable", "LVM cannot read the physical volume on drive naa-1: no label"},
	{"PV unreadable, staged", drivebay.LocationThin, func(f *drivebay.Facts) {
		if f.LV.Unreadable == nil {
			f.LV.Unreadable, f.LV.InUse = map[string]string{"naa-1": "no label"}, true
		}
	}, drivebay.SeverityDegraded, "PhysicalVolumeUnreadable", "naa-1: no label"},
	{"no report of LVM", drivebay.LocationLVM, func(f *drivebay.Facts) { f.LV.Unknown = "no report since noon" }, drivebay.SeverityDegraded, "LogicalVolumeUnknown", "since noon"},
	{"partial", drivebay.LocationLVM, func(f *drivebay.Facts) { f.LV.Partial = true }, drivebay.SeverityInaccessible, "PartialActivation", "device of a part"},
	{"partial mirror", drivebay.LocationMirror, func(f *drivebay.Facts) { f.LV.Partial = true }, drivebay.SeverityDegraded, "PartialActivation", "without one"},
	{"inactive", drivebay.LocationLVM, func(f *drivebay.Facts) { f.LV.Inactive = true }, drivebay.SeverityInaccessible, "LogicalVolumeInactive", "not active"},
	{"suspended", drivebay.LocationLVM, func(f *drivebay.Facts) { f.LV.Suspended = true }, drivebay.SeverityInaccessible, "LogicalVolumeSuspended", "waits"},
	{"read-only volume", drivebay.LocationLVM, func(f *drivebay.Facts) { f.LV.Changed = "it is read-only" }, drivebay.SeverityDegraded, "LogicalVolumeChanged", "read-only"},
	{"pool failed", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.PoolFailed = true }, drivebay.SeverityInaccessible, "ThinPoolFailed", "pool"},
	{"pool out of data", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.OutOfData = true }, drivebay.SeverityInaccessible, "ThinPoolOutOfDataSpace", "pool"},
	{"pool full", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.DataPercent = ptr(100.0) }, drivebay.SeverityInaccessible, "ThinPoolOutOfDataSpace", "pool"},
	{"pool nearly full", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.DataPercent = ptr(max(*f.LV.DataPercent, 90)) }, drivebay.SeverityDegraded, "ThinPoolLowOnDataSpace", "90 %"},
	{"metadata locked", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.MetadataLocked = true }, drivebay.SeverityInaccessible, "ThinPoolOutOfMetadataSpace", "pool"},
	{"metadata full", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.MetadataPercent = ptr(100.0) }, drivebay.SeverityInaccessible, "ThinPoolOutOfMetadataSpace", "pool"},
	{"metadata nearly full", drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.MetadataPercent = ptr(max(*f.LV.MetadataPercent, 95)) }, drivebay.SeverityDegraded, "ThinPoolLowOnMetadataSpace", "95 %"},
	{"resyncing", drivebay.LocationMirror, func(f *drivebay.Facts) { f.LV.SyncPercent = ptr(81.0) }, drivebay.SeverityDegraded, "MirrorOutOfSync", "81 %"},
	{"leg left out", drivebay.LocationMirror, func(f *drivebay.Facts) { f.LV.RefreshNeeded = true }, drivebay.SeverityDegraded, "MirrorOutOfSync", "not in use"},
	{"newest leg not known", drivebay.LocationMirror, func(f *drivebay.Facts) { f.Volume.Mirror = &drivebay.Mirror{Doubt: "each was used alone"} }, drivebay.SeverityInaccessible, "MirrorLegStale", "not known which leg of the mirror holds the newest data: each was used alone"},
	{"legs differ", drivebay.LocationMirror, func(f *drivebay.Facts) { f.LV.Mismatches = 7 }, drivebay.SeverityDegraded, "MirrorMismatch", "7 blocks"},
	{"corrupted, mounted", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.Scrub.Corrupt, f.FS.Scrub.Text = 3, "bad magic" }, drivebay.SeverityDataLoss, "FilesystemCorruption", "3 checks in a row, the newest at 2001-09-09T01:46:40Z, found the filesystem corrupted: bad magic"},
	{"corrupted, unmounted", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.Scrub.Corrupt, f.FS.Scrub.Mounted = max(1, f.FS.Scrub.Corrupt), false }, drivebay.SeverityDataLoss, "FilesystemCorruption", "1 checks"},
	{"filesystem errors", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.Errors = 4 }, drivebay.SeverityDegraded, "FilesystemCorruption", "4 errors"},
	{"overwritten", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Overwritten = "ext4 of another" }, drivebay.SeverityInaccessible, "ContentOverwritten", "the partition has ext4 of another"},
	{"shut down", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.Shutdown = true }, drivebay.SeverityInaccessible, "FilesystemShutdown", "shut itself down"},
	{"read-only", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.ReadOnly = true }, drivebay.SeverityDegraded, "ReadOnlyFilesystem", "every write fails, reads work"},
	{"bad sectors", drivebay.LocationLVM, func(f *drivebay.Facts) { f.IO.Unreadable, f.IO.UnreadableOn = 3, []string{"naa-1"} }, drivebay.SeverityDataLoss, "RWIOError", "cannot read 3 sectors of the volume (drive naa-1"},
	{"no space", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.Free, f.FS.Full = ptr(uint64(10)), 99 }, drivebay.SeverityDegraded, "OutOfCapacity", "space"},
	{"no inodes", drivebay.LocationPartition, func(f *drivebay.Facts) { f.FS.FreeInodes, f.FS.Full = ptr(uint64(0)), 99 }, drivebay.SeverityDegraded, "OutOfCapacity", "inodes"},
	{"cannot be read", drivebay.LocationPartition, func(f *drivebay.Facts) { f.IO.ReadError = "input/output error" }, drivebay.SeverityInaccessible, "RWIOError", "input/output error"},
	{"failed requests", drivebay.LocationPartition, func(f *drivebay.Facts) { f.IO.Errors = 2 }, drivebay.SeverityDegraded, "RWIOError", "2 requests"},
	{"hung", drivebay.LocationPartition, func(f *drivebay.Facts) { f.IO.Frozen = max(f.IO.Frozen, ioStalled) }, drivebay.SeverityInaccessible, "IOStalled", "20 s"},
	{"slow to come back", drivebay.LocationPartition, func(f *drivebay.Facts) { f.IO.Frozen = max(f.IO.Frozen, ioSlow) }, drivebay.SeverityDegraded, "HighLatency", "3 s"},
	{"slow", drivebay.LocationPartition, func(f *drivebay.Facts) { f.IO.Await = ioSlow }, drivebay.SeverityDegraded, "HighLatency", "3 s"},
	{"target not mounted", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Mount.Target.Mounted = false }, drivebay.SeverityInaccessible, "VolumeUnmounted", "/target is not mounted"},
	{"something else mounted", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Mount.Target.Mounted, f.Mount.Target.Other = false, "tmpfs" }, drivebay.SeverityInaccessible, "VolumeUnmounted", "something else is mounted, and has to be unmounted, at the target path /target: tmpfs"},
	{"staging not mounted", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Mount.Staging.Mounted = false }, drivebay.SeverityDegraded, "VolumeUnmounted", "/staging is not mounted"},
	{"target not readable", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Mount.Target.ReadError = "stale handle" }, drivebay.SeverityInaccessible, "PathUnreadable", "reading /target fails: stale handle"},
	{"replication ended too early", drivebay.LocationPartition, func(f *drivebay.Facts) {
		f.Volume.Replication = &drivebay.Replication{Ended: true, ReplicationLink: drivebay.ReplicationLink{Peer: netip.MustParseAddrPort("10.0.0.2:7800")}}
	}, drivebay.SeverityInaccessible, "ReplicaIncomplete", "incomplete or old"},
	{"replication lost", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Volume.Replication = drivebay.LostReplication(1 << 30) }, drivebay.SeverityInaccessible, "ReplicaIncomplete", "when its record was lost"},
	{"split brain", drivebay.LocationPartition, func(f *drivebay.Facts) {
		f.Replication = &drivebay.ReplicationInfo{Status: drivebay.ReplicationError, Conflict: drivebay.SplitBrain, Message: "both were written"}
	}, drivebay.SeverityDegraded, "ReplicationConflict", "has a conflict (split brain): both were written"},
	{"peer away", drivebay.LocationPartition, func(f *drivebay.Facts) {
		if f.Replication == nil {
			f.Replication = &drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, State: "degraded", Message: "the peer does not answer"}
		}
	}, drivebay.SeverityDegraded, "ReplicationDegraded", "its replication is degraded: the peer does not answer"},
	{"half made", drivebay.LocationPartition, func(f *drivebay.Facts) { failing(&f.Volume, drivebay.CSICreating) }, drivebay.SeverityInaccessible, "OperationFailed", "CREATING failed: no space (2 times, the next call tries again)"},
	{"two volumes with its id", drivebay.LocationPartition, func(f *drivebay.Facts) {
		failing(&f.Volume, drivebay.CSICreated)
		f.Volume.Failure.Cause, f.Volume.Failure.Retry = "drive X has another volume with the id of this one", drivebay.RetryOperator
	}, drivebay.SeverityInaccessible, "VolumeConflict", "drive X has another volume"},
	{"half removed", drivebay.LocationPartition, func(f *drivebay.Facts) { failing(&f.Volume, drivebay.CSIRemoving) }, drivebay.SeverityInaccessible, "OperationFailed", "REMOVING failed"},
	{"failed, cause lost", drivebay.LocationPartition, func(f *drivebay.Facts) {
		if f.Volume.CSIStatus != drivebay.CSIFailed {
			f.Volume.CSIStatus = drivebay.CSIFailed
		}
	}, drivebay.SeverityInaccessible, "OperationFailed", "not recorded"},
	{"not grown", drivebay.LocationPartition, func(f *drivebay.Facts) {
		if f.Volume.CSIStatus == drivebay.CSIPublished {
			failing(&f.Volume, drivebay.CSIResizing)
		}
	}, drivebay.SeverityDegraded, "OperationFailed", "RESIZING failed"},
	{"not released", drivebay.LocationPartition, func(f *drivebay.Facts) {
		f.Volume.Usage, f.Volume.UsageFailure = drivebay.VolumeUsageFailed, &drivebay.Failure[drivebay.VolumeUsage]{Before: drivebay.VolumeReleasing, Cause: "no room", Retry: drivebay.RetryOperator}
	}, drivebay.SeverityDegraded, "ReleaseFailed", "RELEASING failed: no room (waits for `drivebay volume retry`)"},
	{"lost on its old drive", drivebay.LocationPartition, func(f *drivebay.Facts) {
		f.Volume.Lost = &drivebay.Lost{Drive: "naa-1", Bytes: 512, Count: 1, Extents: []drivebay.Extent{{Offset: 4096, Length: 512}}}
	}, drivebay.SeverityDataLoss, "DataLost", "drive naa-1 could not read 512 bytes at (offset+length) 4096+512"},
	{"move undecided", drivebay.LocationLVM, func(f *drivebay.Facts) {
		if f.Volume.Location.Kind == drivebay.LocationMirror {
			f.Volume.Mirror = &drivebay.Mirror{Doubt: "each was used alone"} // another drive is another leg
			return
		}
		f.Volume.Location.Found, f.Volume.Location.Drives = true, append(f.Volume.Location.Drives, "naa-2")
		other := f.Drives[0]
		other.ID = "naa-2"
		f.Drives = append(f.Drives, other)
	}, drivebay.SeverityDegraded, "MoveUndecided", "on 2 drives"},
	{"move refused", drivebay.LocationLVM, func(f *drivebay.Facts) { f.MoveBlocked = "volume group vg: refused" }, drivebay.SeverityDegraded, "MoveBlocked", "does not move off its drive: volume group vg: refused"},
	{"LV gone", drivebay.LocationLVM, func(f *drivebay.Facts) { f.Gone = true }, drivebay.SeverityInaccessible, "VolumeNotFound", "vg/lv"},
	{"MISSING", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Volume.OperationalStatus = drivebay.Missing }, drivebay.SeverityInaccessible, "VolumeNotFound", "PARTITION"},
	{"INOPERATIVE", drivebay.LocationPartition, func(f *drivebay.Facts) {
		if f.Volume.OperationalStatus == drivebay.Operative {
			f.Volume.OperationalStatus = drivebay.Inoperative
		}
	}, drivebay.SeverityInaccessible, "VolumeInoperative", "node-1"},
	{"health BAD", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Volume.Health = drivebay.HealthBad }, drivebay.SeverityDegraded, "HealthNotGood", "BAD"},
	{"health SUSPECT", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Volume.Health = f.Volume.Health.Worse(drivebay.HealthSuspect) }, drivebay.SeverityDegraded, "HealthNotGood", "SUSPECT"},
	{"health UNKNOWN", drivebay.LocationPartition, func(f *drivebay.Facts) { f.Volume.Health = f.Volume.Health.Worse(drivebay.HealthUnknown) }, drivebay.SeverityDegraded, "HealthNotGood", "UNKNOWN"},
	{"status UNKNOWN", drivebay.LocationPartition, func(f *drivebay.Facts) {
		if f.Volume.OperationalStatus == drivebay.Operative {
			f.Volume.OperationalStatus = drivebay.OperationalUnknown
		}
	}, drivebay.SeverityDegraded, "StatusUnknown", "OperationalStatus UNKNOWN"},
}

func TestEveryRuleFiresAlone(t *testing.T) {
	fired := map[string]bool{}
	for _, c := range faults {
		f := sound(c.on)
		c.fault(&f)
		got := Of(f)
		if len(got) != 1 || got[0].Severity != c.want || got[0].Reason != c.reason {
			t.Errorf("%s: %+v, want %v %s alone", c.name, got, c.want, c.reason)
			continue
		}
		for _, want := range []string{c.says, "drive naa-", ", serial ", ", bay "} {
			if !strings.Contains(got[0].Message, want) {
				t.Errorf("%s: message %q lacks %q", c.name, got[0].Message, want)
			}
		}
		if strings.ContainsAny(got[0].Message, "{}") || strings.Contains(got[0].Message, "%!") || !strings.HasSuffix(got[0].Message, ".") {
			t.Errorf("%s: message %q is not whole", c.name, got[0].Message)
		}
		fired[c.want.String()+c.reason] = true
	}
	for _, r := range Rules() {
		if !fired[r.Severity.String()+r.Reason] {
			t.Errorf("no fault above makes %v %s", r.Severity, r.Reason)
		}
	}
}

// fits holds for the short form of every message.
func fits(t *testing.T, what, s string) {
	t.Helper()
	if len(s) > 128 || !utf8.ValidString(s) || strings.Contains(s, "/") || s == "" {
		t.Fatalf("%s: short message %q of %d bytes", what, s, len(s))
	}
}

// TestShortMessages: in 128 bytes a message says its cause first, names no path and ends
// with a word.
func TestShortMessages(t *testing.T) {
	paths := regexp.MustCompile(`(?:^| )[("` + "`" + `]?/\S*`)
	for _, c := range faults {
		for _, long := range []string{"", "/var/lib/kubelet/plugins/csi", strings.Repeat("/a-long-folder", 30)} {
			f := sound(c.on)
			c.fault(&f)
			for _, p := range []*drivebay.PathFacts{f.Mount.Staging, f.Mount.Target} {
				if p != nil && long != "" {
					p.Path = long
				}
			}
			l := newLook(f)
			for i := range rules {
				h := rules[i].check(l)
				if h == nil {
					continue
				}
				l.worst = max(l.worst, rules[i].Severity)
				got := drivebay.VolumeFinding{Message: l.message(&rules[i], h)}.Short()
				fits(t, c.name, got)
				cause, _, _ := strings.Cut(paths.ReplaceAllString(h.text, ""), "/") // as far as it is the same
				cause = strings.TrimRight(cause[:min(len(cause), 90)], ":;,. ")
				if at := strings.LastIndexByte(cause, ' '); len(cause) > 80 || at > 0 && strings.Contains(h.text, "/") {
					cause = cause[:at]
				}
				if !strings.HasPrefix(got, cause) {
					t.Errorf("%s: %q does not begin with %q", c.name, got, cause)
				}
			}
		}
	}
	for in, want := range map[string]string{
		"reading /var/lib/x: input/output error. Next.":       "reading: input-output error. Next.",
		"open (/dev/sda), I/O error on \"/dev/sdb\" in vg/lv": "open, IO error on in vg-lv",
		strings.Repeat("word ", 40):                           strings.Repeat("word ", 24) + "word …",
		strings.Repeat("ä", 100):                              strings.Repeat("ä", 62) + "…",
	} {
		if got := (drivebay.VolumeFinding{Message: in}).Short(); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// TestReasonOnce: a reason that two findings have is named once.
func TestReasonOnce(t *testing.T) {
	c := drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: "RWIOError", Message: "a."}, {Severity: drivebay.SeverityDegraded, Reason: "DiskFailure", Message: "b."},
		{Severity: drivebay.SeverityDegraded, Reason: "RWIOError", Message: "c."}, {Severity: drivebay.SeverityDegraded, Reason: "DiskFailure", Message: "d."}}
	if got := c.Message(); got != "RWIOError: a. Also: DiskFailure" {
		t.Error(got)
	}
	if got := c[2:3].Message() + c[2:].Message(); got != "RWIOError: c.RWIOError: c. Also: DiskFailure" {
		t.Error(got)
	}
}

func TestSoundVolumesHaveNoFindings(t *testing.T) {
	for _, kind := range kinds {
		for strip := range 32 { // any part may not have been looked at
			f := sound(kind)
			if strip&1 != 0 {
				f.LV = nil
			}
			if strip&2 != 0 {
				f.FS = nil
			}
			if strip&4 != 0 {
				f.IO = nil
			}
			if strip&8 != 0 {
				f.Mount = nil
			}
			if strip&16 != 0 {
				f.Drives, f.Complete = nil, false
			}
			if got := Of(f); got.Abnormal() || got.Severity() != drivebay.SeverityNone || got.Message() != "no fault is known" {
				t.Errorf("%v without %05b: %+v", kind, strip, got)
			}
		}
		f := sound(kind)
		f.LV, f.FS, f.Mount = &drivebay.LVFacts{Inactive: true}, &drivebay.FSFacts{Bytes: ptr(uint64(0)), Free: ptr(uint64(0)), Scrub: &drivebay.Scrub{Corrupt: 2, Mounted: true}}, &drivebay.MountFacts{}
		f.Volume.CSIStatus, f.Volume.Publications = drivebay.CSICreated, nil
		if got := Of(f); got.Abnormal() {
			t.Errorf("%v with one bad check of a mounted filesystem: %+v", kind, got)
		}
		f.FS.Scrub = &drivebay.Scrub{} // sound, and not mounted meanwhile
		if got := Of(f); got.Abnormal() {
			t.Errorf("%v mounted nowhere: %+v", kind, got)
		}
		f.Volume.CSIStatus, f.Volume.OperationalStatus, f.Gone = drivebay.CSICreating, drivebay.OperationalStaging, true
		if got := Of(f); got.Abnormal() {
			t.Errorf("%v being made: %+v", kind, got)
		}
	}
}

// TestDriveGoneAndPeerThere: a primary whose drive is gone works with the data of its peer.
func TestDriveGoneAndPeerThere(t *testing.T) {
	for name, fault := range map[string]func(*drivebay.Facts){
		"pulled": func(f *drivebay.Facts) { f.Drives[0].Status, f.Gone = drivebay.StatusOffline, true },
		"given up": func(f *drivebay.Facts) {
			f.Drives[0].Health, f.Drives[0].Kernel.State = drivebay.HealthBad, "offline"
		},
	} {
		for _, remote := range []bool{true, false} {
			f := sound(drivebay.LocationPartition)
			fault(&f)
			f.Replication = &drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, Primary: true, Remote: remote, State: "degraded", Message: "the local disk is missing"}
			got := Of(f)
			if len(got) != 2 || (got[0].Severity == drivebay.SeverityInaccessible) == remote || got[1].Reason != "ReplicationDegraded" {
				t.Errorf("%s, with the peer %v: %+v", name, remote, got)
			}
		}
	}
}

// Findings with one cause are reported once, under one reason.
func TestOneCauseIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		on    drivebay.LocationKind
		fault func(*drivebay.Facts)
		want  string
	}{
		"pulled": {drivebay.LocationPartition, func(f *drivebay.Facts) {
			f.Drives[0].Status, f.Drives[0].Health, f.Drives[0].Kernel.State = drivebay.StatusOffline, drivebay.HealthUnknown, "offline"
			f.Volume.Health, f.Volume.OperationalStatus, f.Gone = drivebay.HealthUnknown, drivebay.Missing, true
		}, "DiskRemoved"},
		"failing": {drivebay.LocationPartition, func(f *drivebay.Facts) { f.Drives[0].Health, f.Volume.Health = drivebay.HealthBad, drivebay.HealthBad }, "DiskFailure"},
		"given up": {drivebay.LocationPartition, func(f *drivebay.Facts) {
			f.Drives[0].Health, f.Drives[0].Kernel.State = drivebay.HealthBad, "offline"
			f.Volume.Health, f.Volume.OperationalStatus = drivebay.HealthBad, drivebay.Inoperative
		}, "DiskFailure"},
		"hung": {drivebay.LocationPartition, func(f *drivebay.Facts) {
			f.IO.Frozen, f.IO.Await, f.Volume.OperationalStatus = ioStalled, ioStalled, drivebay.Inoperative
		}, "IOStalled"},
		"leg lost": {drivebay.LocationMirror, func(f *drivebay.Facts) {
			f.Drives[0].Status, f.Volume.Health = drivebay.StatusOffline, drivebay.HealthSuspect
		}, "DiskRemoved"},
		"pool full":   {drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.OutOfData, f.LV.DataPercent = true, ptr(99.9) }, "ThinPoolOutOfDataSpace"},
		"pool locked": {drivebay.LocationThin, func(f *drivebay.Facts) { f.LV.MetadataLocked, f.LV.MetadataPercent = true, ptr(99.9) }, "ThinPoolOutOfMetadataSpace"},
	} {
		f := sound(c.on)
		c.fault(&f)
		if got := Of(f); len(got) != 1 || got[0].Reason != c.want {
			t.Errorf("%s: %+v, want %s alone", name, got, c.want)
		}
	}
}

// TestMissingVolumeComesFirst: the condition of a missing volume begins with that. Its mounts are gone
// with it, and no call mounts it again.
func TestMissingVolumeComesFirst(t *testing.T) {
	f := sound(drivebay.LocationLVM)
	f.Gone, f.Mount.Target.Mounted, f.Mount.Staging.Mounted = true, false, false
	c := Of(f)
	if len(c) < 3 || c[0].Reason != "VolumeNotFound" || c[1].Reason != "VolumeUnmounted" || c[1].Severity != drivebay.SeverityInaccessible {
		t.Errorf("%+v", c)
	}
	if c.Severity() != drivebay.SeverityInaccessible || !strings.Contains(c.Message(), "drivebay volume forget") {
		t.Errorf("%v: %s", c.Severity(), c.Message())
	}
}

func TestTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		key := r.Severity.String() + " " + r.Reason
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if r.Section == "" || r.When == "" || r.Says == "" || r.Source == "" || r.Severity == drivebay.SeverityNone || r.Severity > drivebay.SeverityDataLoss {
			t.Errorf("%s is not whole: %+v", key, r)
		}
		if len(r.Reason) > maxReason || len(r.Reason) > 32 || strings.ContainsFunc(r.Reason, func(c rune) bool { return c < 'A' || c > 'z' }) {
			t.Errorf("reason %q is no short CamelCase word", r.Reason)
		}
		if len(r.Next) > 200 || !strings.HasSuffix(r.Next, ".") {
			t.Errorf("%s: next step %q has %d bytes", key, r.Next, len(r.Next))
		}
	}
	for _, reason := range []string{"VolumeNotFound", "OutOfCapacity", "DiskFailure", "DiskRemoved", "ConfigError", "NetworkError", "DiskDegrading", "VolumeUnmounted", "RWIOError", "FilesystemCorruption"} {
		if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.Reason == reason }) {
			t.Errorf("KEP-1432 has %s and the table has not", reason)
		}
	}
}

func sectionOf(f drivebay.VolumeFinding) Section {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Reason == f.Reason && r.Severity == f.Severity })
	return rules[i].Section
}

// lawful holds for every condition there is.
func lawful(t *testing.T, what string, c drivebay.Condition) {
	t.Helper()
	seen := map[string]bool{}
	for i, f := range c {
		key := f.Severity.String() + f.Reason
		if seen[key] || i > 0 && c[i-1].Severity < f.Severity || f.Severity == drivebay.SeverityNone {
			t.Fatalf("%s: %v %s is there twice or out of order", what, f.Severity, f.Reason)
		}
		seen[key] = true
		if len(f.Reason) > maxReason || len(f.Message) > drivebay.MaxConditionMessage || !utf8.ValidString(f.Message) || !strings.HasSuffix(f.Message, ".") {
			t.Fatalf("%s: %s has a bad message of %d bytes: %q", what, f.Reason, len(f.Message), f.Message)
		}
		fits(t, what, f.Short())
	}
	if m := c.Message(); len(m) > drivebay.MaxConditionMessage || !utf8.ValidString(m) || len(c) > maxFindings || c.Abnormal() != (len(c) > 0) {
		t.Fatalf("%s: %d findings, message %q", what, len(c), m)
	}
}

// A mirror whose legs are namespaces of one SSD is lost with it. On other volumes it is no fault that a drive has siblings.
func TestMirrorOnOneDevice(t *testing.T) {
	for address, want := range map[string]bool{"0000:01:00.0": true, "0000:02:00.0": false} {
		f := sound(drivebay.LocationMirror)
		for i, at := range []string{"0000:01:00.0", address} {
			f.Drives[i].Transport, f.Drives[i].Paths[0].Address = drivebay.TransportNVMe, at
		}
		c := Of(f)
		lawful(t, address, c)
		if got := len(c) == 1 && c[0].Reason == "MirrorOnOneDevice" && c[0].Severity == drivebay.SeverityDegraded; got != want || !want && c.Abnormal() {
			t.Errorf("legs at 0000:01:00.0 and %s: %v", address, c)
		}
		f.Volume.Location.Kind = drivebay.LocationLVM
		if c := Of(f); c.Abnormal() {
			t.Errorf("no mirror: %v", c)
		}
	}
}

// TestFaultsNeverImprove piles up random faults on random volumes. With each
// one more the worst gets no better, and whatever was found is still found or
// has given way to something as bad: a status to its explanation, a warning to
// the event.
func TestFaultsNeverImprove(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range randomVolumes {
		f := sound(kinds[rnd.IntN(len(kinds))])
		trail, last, health := f.Volume.Location.Kind.String(), Of(f), HealthOf(f)
		for range 1 + rnd.IntN(12) {
			c := faults[rnd.IntN(len(faults))]
			c.fault(&f)
			trail += ", " + c.name
			now := Of(f)
			lawful(t, trail, now)
			if now.Severity() < last.Severity() || now.Severity() < drivebay.SeverityDegraded {
				t.Fatalf("%s: worst is %v after %v", trail, now.Severity(), last.Severity())
			}
			h := HealthOf(f)
			if f.Drives[0].ID == f.Volume.Location.Drives[0] && health.Worse(h) != h { // what is not listed takes its verdict along
				t.Fatalf("%s: health is %v after %v", trail, h, health)
			}
			health = h
			for _, old := range last {
				if len(now) < maxFindings && !heirOf(old, now) {
					t.Fatalf("%s: %v %s is lost in %+v", trail, old.Severity, old.Reason, now)
				}
			}
			last = now
		}
	}
}

// heirOf says whether a finding is still there, or one of its kind that is no
// better. A bare status has done its part when anything explains it.
func heirOf(old drivebay.VolumeFinding, now drivebay.Condition) bool {
	return slices.ContainsFunc(now, func(f drivebay.VolumeFinding) bool {
		same := f.Reason == old.Reason || sectionOf(f) == sectionOf(old) || sectionOf(old) == OnRecord
		return same && f.Severity >= old.Severity
	})
}

func TestUnlookedMountsSayNothing(t *testing.T) {
	mounted := func(c drivebay.Condition) (out []string) {
		for _, f := range c {
			if sectionOf(f) == OnMount {
				out = append(out, f.Reason)
			}
		}
		return out
	}
	for _, c := range faults {
		f := sound(c.on)
		c.fault(&f)
		all := Of(f)
		f.Mount = nil
		bare := Of(f)
		if len(mounted(bare)) > 0 {
			t.Errorf("%s: %v without a look at the mounts", c.name, mounted(bare))
		}
		if len(bare) != len(all)-len(mounted(all)) {
			t.Errorf("%s: a look at the mounts changes other findings: %+v, %+v", c.name, bare, all)
		}
		f.Mount = &drivebay.MountFacts{Staging: &drivebay.PathFacts{Path: "/staging"}, Target: &drivebay.PathFacts{Path: "/target"}}
		if got := mounted(Of(f)); !slices.Equal(got, []string{"VolumeUnmounted", "VolumeUnmounted"}) {
			t.Errorf("%s: suppresses the mounts: %v", c.name, got)
		}
	}
}

func TestHostileStringsKeepTheLimits(t *testing.T) {
	for _, evil := range []string{strings.Repeat("A", 10_000), strings.Repeat("\xff\xfe", 5_000), strings.Repeat("ä", 5_000), strings.Repeat("€", 4_000), "x\x00\n\x1b[2J{drive}{volume}%s%d", strings.Repeat("\U0001F4A9", 3_000)} {
		for _, kind := range kinds {
			f := sound(kind)
			for _, c := range faults {
				c.fault(&f)
			}
			f.Volume.ID, f.Volume.Node, f.Volume.Location.VG, f.Volume.Location.Pool = evil, evil, evil, evil
			f.Volume.UsageFailure.Cause, f.Volume.Failure.Cause = evil, evil
			f.LV.MissingPVs, f.FS.Scrub.Text, f.IO.ReadError = []string{evil, evil}, evil, evil
			f.Mount.Target.Path, f.Mount.Target.Other, f.Mount.Target.ReadError, f.Mount.Staging.Path = evil, evil, evil, evil
			f.Volume.Location.Drives = nil
			for i := range f.Drives {
				d := &f.Drives[i]
				d.ID, d.Serial, d.Slot.Bay, d.IdentityIssue = evil, evil, evil, evil
				d.Findings, d.Paths[1] = []drivebay.Finding{{Text: evil}}, drivebay.Path{Name: evil, State: evil}
			}
			for range 9 {
				f.Volume.Location.Drives = append(f.Volume.Location.Drives, evil)
			}
			c := Of(f)
			if len(c) != maxFindings {
				t.Errorf("%v: %d findings of everything at once, want the %d worst", kind, len(c), maxFindings)
			}
			lawful(t, kind.String(), c)
			for _, found := range c {
				if !strings.Contains(found.Message, "and 6 more). ") && !strings.Contains(found.Message, "…. ") {
					t.Fatalf("%s: no next step after %q", found.Reason, found.Message)
				}
				if strings.ContainsAny(found.Message, "\x00\n\x1b") {
					t.Fatalf("control characters in %q", found.Message)
				}
			}
		}
	}
}

// Whatever is left at zero must be heard of.
func TestUnknownIsNeverHealthy(t *testing.T) {
	if c := Of(drivebay.Facts{}); !c.Abnormal() {
		t.Error("the zero volume has no findings")
	}
	for name, forget := range map[string]func(*drivebay.Facts){
		"health":       func(f *drivebay.Facts) { f.Volume.Health = drivebay.HealthUnknown },
		"csi status":   func(f *drivebay.Facts) { f.Volume.CSIStatus = drivebay.CSIUnknown },
		"operational":  func(f *drivebay.Facts) { f.Volume.OperationalStatus = drivebay.OperationalUnknown },
		"usage":        func(f *drivebay.Facts) { f.Volume.Usage = drivebay.VolumeUsageUnknown },
		"drive health": func(f *drivebay.Facts) { f.Drives[0].Health = drivebay.HealthUnknown },
		"drive status": func(f *drivebay.Facts) { f.Drives[0].Status = drivebay.StatusUnknown },
		"drive":        func(f *drivebay.Facts) { f.Drives, f.Complete = []drivebay.Drive{}, false },
		"location":     func(f *drivebay.Facts) { f.Volume.Location = drivebay.Location{} },
	} {
		for _, kind := range kinds {
			f := sound(kind)
			forget(&f)
			if c := Of(f); !c.Abnormal() {
				t.Errorf("%v without %s is fine", kind, name)
			}
		}
	}
}

// TestAdviceWhileADriveLeaves: the next step of a finding does not contradict what is
// under way with the drive.
func TestAdviceWhileADriveLeaves(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   drivebay.LocationKind
		change func(*drivebay.Facts, *drivebay.Drive)
		want   string
	}{
		{"a leg is gone", drivebay.LocationMirror, func(_ *drivebay.Facts, d *drivebay.Drive) { d.Status = drivebay.StatusOffline }, "Put the drive back"},
		{"a leg is gone and its mirror is being rebuilt", drivebay.LocationMirror, func(_ *drivebay.Facts, d *drivebay.Drive) {
			d.Status, d.Usage = drivebay.StatusOffline, drivebay.UsageReleasing
		}, "Leave the drive out: the mirror is being rebuilt"},
		{"a leg is gone and a third drive has joined", drivebay.LocationMirror, func(f *drivebay.Facts, d *drivebay.Drive) {
			d.Status = drivebay.StatusOffline
			third := *d
			third.ID, third.Status = "naa-3", drivebay.StatusOnline
			f.Volume.Location.Drives = append(f.Volume.Location.Drives, third.ID)
			f.Drives = append(f.Drives, third)
		}, "Leave the drive out: the mirror is being rebuilt"},
		{"the leg with the newest data is gone while it leaves", drivebay.LocationMirror, func(f *drivebay.Facts, d *drivebay.Drive) {
			d.Status, d.Usage = drivebay.StatusOffline, drivebay.UsageReleasing
			f.Volume.Mirror = &drivebay.Mirror{Current: d.ID}
		}, "Put back the drive with the newest data"},
		{"the leg with the newest data was taken out", drivebay.LocationMirror, func(f *drivebay.Facts, d *drivebay.Drive) {
			d.Status, d.Usage = drivebay.StatusOffline, drivebay.UsageRemoved
			f.Volume.Mirror = &drivebay.Mirror{Current: d.ID}
		}, "drivebay volume accept-loss"},
		{"a leg was taken out", drivebay.LocationMirror, func(_ *drivebay.Facts, d *drivebay.Drive) {
			d.Status, d.Usage = drivebay.StatusOffline, drivebay.UsageRemoved
		}, "insert its successor"},
		{"pulled", drivebay.LocationPartition, func(_ *drivebay.Facts, d *drivebay.Drive) { d.Status = drivebay.StatusOffline }, "Put the drive back"},
		{"taken out", drivebay.LocationPartition, func(_ *drivebay.Facts, d *drivebay.Drive) {
			d.Status, d.Usage = drivebay.StatusOffline, drivebay.UsageRemoved
		}, "`drivebay volume forget "},
		{"bad", drivebay.LocationPartition, func(_ *drivebay.Facts, d *drivebay.Drive) { d.Health = drivebay.HealthBad }, "Replace the drive"},
		{"bad and leaving", drivebay.LocationPartition, func(_ *drivebay.Facts, d *drivebay.Drive) {
			d.Health, d.Usage = drivebay.HealthBad, drivebay.UsageReleasing
		}, "Leave the drive in its bay: its data is moving"},
		{"suspect and RELEASED", drivebay.LocationPartition, func(_ *drivebay.Facts, d *drivebay.Drive) {
			d.Health, d.Usage = drivebay.HealthSuspect, drivebay.UsageReleased
		}, "removes the drive"},
	} {
		f := sound(c.kind)
		c.change(&f, &f.Drives[len(f.Drives)-1])
		if got := Of(f).Message(); !strings.Contains(got, c.want) || strings.Contains(got, "Put the drive back") != strings.HasPrefix(c.want, "Put the") {
			t.Errorf("%s: %s, want %q", c.name, got, c.want)
		}
	}
}

// TestFillLevel: how full a filesystem is is a fault only from the threshold on that was
// configured, and what is reserved for root is neither free nor used.
func TestFillLevel(t *testing.T) {
	for _, c := range []struct {
		full                  int
		bytes, free, reserved uint64
		inodes, freeInodes    uint64
		want                  string
	}{
		{0, 1000, 0, 0, 1000, 0, ""},
		{90, 1000, 101, 0, 1000, 500, ""},
		{90, 1000, 100, 0, 1000, 500, "has used 90 % of its space"},
		{90, 1000, 96, 50, 1000, 500, ""},
		{90, 1000, 95, 50, 1000, 500, "has used 90 % of its space"},
		{95, 1000, 50, 50, 1000, 500, ""},
		{100, 1000, 0, 50, 1000, 500, "has used 100 % of its space"},
		{100, 1000, 1, 50, 1000, 500, ""},
		{99, 1000, 500, 0, 1000, 10, "has used 99 % of its inodes"},
		{99, 1000, 500, 0, 0, 0, ""},
		{1, 1 << 62, 1 << 62, 0, 0, 0, ""},
	} {
		f := sound(drivebay.LocationPartition)
		f.FS.Full, f.FS.Bytes, f.FS.Free, f.FS.Reserved = c.full, &c.bytes, &c.free, c.reserved
		f.FS.Inodes, f.FS.FreeInodes = &c.inodes, &c.freeInodes
		got := Of(f)
		if c.want == "" && got.Abnormal() || c.want != "" && !strings.Contains(got.Message(), c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
