package instances

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// NewInstance returns the instance for a new volume or snapshot: a UUID of version 7 (RFC 9562,
// section 5.7), which begins with its time. The time is later than that of every instance on the
// drives and in the records, and of every deletion, also after the clock was set back. Two volumes
// with the same id can therefore be ordered without any record.
func (e *Finder) NewInstance() string {
	at := max(e.Machine.Now().UnixMilli(), e.latestInstanceTime().UnixMilli()+1)
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	binary.BigEndian.PutUint64(b[:8], uint64(at)<<16|uint64(b[6])<<8|uint64(b[7]))
	return ledger.UUIDAs(7, b)
}

// latestInstanceTime returns the latest time of all instances on the drives and in the records, and of all
// deletions.
func (e *Finder) latestInstanceTime() time.Time {
	last, limit := time.UnixMilli(0), e.Machine.Now().AddDate(100, 0, 0) // damage must not use up the 48 bits
	see := func(instance string) {
		if at, known := instanceTime(instance); known && at.After(last) && at.Before(limit) {
			last = at
		}
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for _, parts := range e.Partitions.Index.Parts {
		for _, p := range parts {
			if ledger.IDOfPartition(p.Title) != "" {
				see(strings.ToLower(p.GUID))
			}
		}
	}
	if x := e.Partitions.Index.LVM; x != nil {
		for i := range x.Report.Groups {
			for j := range x.Report.Groups[i].LVs {
				see(partitions.TagOf(&x.Report.Groups[i].LVs[j], partitions.KeyInst))
			}
		}
	}
	for _, r := range e.Ledger.Records {
		for _, l := range LocationsOf(r) {
			see(InstanceOf(l))
		}
	}
	for _, r := range e.Ledger.Snapshots {
		see(InstanceOf(r.Snapshot.Location))
	}
	for _, f := range e.Forgotten {
		if see(f.Instance); f.Instance == "" && f.At.After(last) { // the deletion of an id
			last = f.At
		}
	}
	return last
}

// instanceTime returns the time at which an instance was made. The time is unknown for a random UUID:
// earlier versions gave one to each partition.
func instanceTime(instance string) (at time.Time, known bool) {
	if text, created := strings.CutPrefix(instance, partitions.CreatedPrefix); created {
		at, err := time.Parse(time.RFC3339, text)
		return at, err == nil
	}
	if !partitions.IsUUID(instance) || instance[14] != '7' {
		return at, false
	}
	b, err := hex.DecodeString(instance[:8] + instance[9:13])
	if err != nil {
		return at, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(append([]byte{0, 0}, b...)))), true
}

// isOlderInstance reports whether one instance was certainly made before the other.
func isOlderInstance(one, other string) bool {
	a, known := instanceTime(one)
	b, known2 := instanceTime(other)
	return known && known2 && a.Before(b)
}

// Newer reports whether one of the others was certainly made after a volume.
func Newer(v *drivebay.Volume, others []OnDrive) bool {
	return slices.ContainsFunc(others, func(o OnDrive) bool { return isOlderInstance(InstanceOf(v.Location), o.Instance) })
}

// OfEarlierVolume reports whether a snapshot is certainly older than the volume that has the id of its source now: it is of another volume.
func OfEarlierVolume(s *drivebay.VolumeSnapshot, source *drivebay.Volume) bool {
	return isOlderInstance(InstanceOf(s.Location), InstanceOf(source.Location))
}

// DetectConflict fails a volume until an operator decides, while the drives have a second
// complete volume with its id that may be newer. The engine never makes a second one, so the
// records are older than the drives. Neither volume is used before the decision.
func (e *Finder) DetectConflict(r *drivebay.VolumeRecord) error {
	v := &r.Volume
	if r.Work != nil || v.Undecided() != "" || !e.OwnIsThere(v) {
		return nil
	}
	others := e.OthersOf(v.ID, v.Location)
	i := slices.IndexFunc(others, func(o OnDrive) bool { return o.Instance != "" && !isOlderInstance(o.Instance, InstanceOf(v.Location)) })
	if i < 0 {
		return nil
	}
	why := fmt.Sprintf("%s has another volume with the id of this one (%s), and which of the two is newer is not known", others[i].Drive, others[i].Instance)
	_, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume, err = r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: why, Since: e.Machine.Now(), Retry: drivebay.RetryOperator})
		return err
	})
	if err == nil {
		e.NoteNewer(v, why)
	}
	return err
}

// Undecided refuses a volume of which the drives have two, and names both ways out. Where both are on one drive, it
// cannot be pulled to use the other one.
func Undecided(v *drivebay.Volume) error {
	why, on := v.Undecided(), strings.Join(v.Location.Drives, ", ")
	if why == "" {
		return nil
	}
	other := "pull drive " + on
	if strings.Contains(why, on) && !v.Location.OnLVM() {
		other = fmt.Sprintf("stop drivebay, delete partition %s of that drive (`sfdisk --delete`), start it again", v.Location.Partition)
	}
	return fmt.Errorf("%w: %s; `drivebay volume clear %s` uses the copy on drive %s; to use the other one, %s and run `drivebay volume forget %[3]s`", drivebay.ErrRefused, why, v.ID, on, other)
}
