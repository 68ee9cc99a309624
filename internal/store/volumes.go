package store

import (
	"encoding/json"
	"fmt"

	"github.com/drivebay/drivebay"
	bolt "go.etcd.io/bbolt"
)

var (
	volumesBucket   = []byte("volumes")
	snapshotsBucket = []byte("snapshots")
	forgottenBucket = []byte("forgotten")
	remainsBucket   = []byte("remains")
)

// Volumes returns the records of all volumes, by id.
func (b *Bolt) Volumes() (map[string]drivebay.VolumeRecord, error) {
	return entries[drivebay.VolumeRecord](b, volumesBucket)
}

// PutVolume stores the record of one volume.
func (b *Bolt) PutVolume(r drivebay.VolumeRecord) error {
	return b.putEntry(volumesBucket, "volume", r.Volume.ID, r)
}

// DeleteVolume deletes the record of a volume; a missing record is no error.
func (b *Bolt) DeleteVolume(id string) error { return b.deleteEntry(volumesBucket, id) }

// VolumeSnapshots returns the records of all snapshots of volumes, by id.
func (b *Bolt) VolumeSnapshots() (map[string]drivebay.SnapshotRecord, error) {
	return entries[drivebay.SnapshotRecord](b, snapshotsBucket)
}

// PutVolumeSnapshot stores the record of one snapshot.
func (b *Bolt) PutVolumeSnapshot(r drivebay.SnapshotRecord) error {
	return b.putEntry(snapshotsBucket, "snapshot", r.Snapshot.ID, r)
}

// DeleteVolumeSnapshot deletes the record of a snapshot; a missing record is no error.
func (b *Bolt) DeleteVolumeSnapshot(id string) error { return b.deleteEntry(snapshotsBucket, id) }

// Forgotten returns the volumes and snapshots that were forgotten, by key.
func (b *Bolt) Forgotten() (map[string]drivebay.ForgottenVolume, error) {
	return entries[drivebay.ForgottenVolume](b, forgottenBucket)
}

// PutForgotten records that a volume or snapshot was forgotten.
func (b *Bolt) PutForgotten(f drivebay.ForgottenVolume) error {
	return b.putEntry(forgottenBucket, "forgotten volume", f.Key(), f)
}

// DeleteForgotten deletes such a record; a missing key is no error.
func (b *Bolt) DeleteForgotten(key string) error { return b.deleteEntry(forgottenBucket, key) }

// Remains returns the ranges in which moved volumes left data, by partition.
func (b *Bolt) Remains() (map[string]drivebay.Remains, error) {
	return entries[drivebay.Remains](b, remainsBucket)
}

// PutRemains stores the ranges of one partition in which moved volumes left data.
func (b *Bolt) PutRemains(r drivebay.Remains) error {
	return b.putEntry(remainsBucket, "remains", r.Partition, r)
}

// DeleteRemains deletes the ranges of a partition; a missing record is no error.
func (b *Bolt) DeleteRemains(partition string) error { return b.deleteEntry(remainsBucket, partition) }

func (b *Bolt) putEntry(bucket []byte, what, id string, r any) error {
	v, err := encode(what, id, r)
	if err != nil {
		return err
	}
	return b.update("write a "+what, func(tx *bolt.Tx) error {
		if err := tx.Bucket(bucket).Put([]byte(id), seal([]byte(id), v)); err != nil {
			return fmt.Errorf("%s %s: %w", what, id, err)
		}
		return nil
	})
}

func (b *Bolt) deleteEntry(bucket []byte, id string) error {
	if id == "" {
		return nil
	}
	return b.update("delete from "+string(bucket), func(tx *bolt.Tx) error { return tx.Bucket(bucket).Delete([]byte(id)) })
}

// entries returns all entries of a bucket. It moves an entry that does not decode into
// quarantine and returns the others.
func entries[T any](b *Bolt, bucket []byte) (map[string]T, error) {
	out := map[string]T{}
	err := b.scan(bucket, nil, func(k, v []byte) (bool, error) {
		var r T
		if err := json.Unmarshal(v, &r); err != nil {
			return true, err
		}
		if id := idOf(r); id != string(k) {
			return true, fmt.Errorf("it is the record of %q", id)
		}
		out[string(k)] = r
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// idOf returns the key under which a record is stored.
func idOf(r any) string {
	switch r := r.(type) {
	case drivebay.Record:
		return r.Drive.ID
	case drivebay.VolumeRecord:
		return r.Volume.ID
	case drivebay.SnapshotRecord:
		return r.Snapshot.ID
	case drivebay.ForgottenVolume:
		return r.Key()
	case drivebay.Remains:
		return r.Partition
	}
	return ""
}

// encode encodes a record for the store.
func encode(what, id string, r any) ([]byte, error) {
	if id == "" {
		return nil, fmt.Errorf("record of a %s without an id: %w", what, drivebay.ErrInvalid)
	}
	v, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record of %s %s: %w", what, id, err)
	}
	return v, nil
}

// shelf is a bucket in memory.
type shelf map[string][]byte

func shelved[T any](m *Mem, s shelf, what string) (map[string]T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]T, len(s))
	for id, b := range s {
		var r T
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, fmt.Errorf("record of %s %s: %w", what, id, err)
		}
		out[id] = r
	}
	return out, nil
}

func (m *Mem) putEntry(s shelf, what, id string, r any) error {
	v, err := encode(what, id, r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s[id] = v
	return nil
}

func (m *Mem) deleteEntry(s shelf, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(s, id)
	return nil
}

// Volumes returns the records of all volumes, by id.
func (m *Mem) Volumes() (map[string]drivebay.VolumeRecord, error) {
	return shelved[drivebay.VolumeRecord](m, m.volumes, "volume")
}

// PutVolume stores the record of one volume.
func (m *Mem) PutVolume(r drivebay.VolumeRecord) error {
	return m.putEntry(m.volumes, "volume", r.Volume.ID, r)
}

// DeleteVolume deletes the record of a volume; a missing record is no error.
func (m *Mem) DeleteVolume(id string) error { return m.deleteEntry(m.volumes, id) }

// VolumeSnapshots returns the records of all snapshots of volumes, by id.
func (m *Mem) VolumeSnapshots() (map[string]drivebay.SnapshotRecord, error) {
	return shelved[drivebay.SnapshotRecord](m, m.snapshots, "snapshot")
}

// PutVolumeSnapshot stores the record of one snapshot.
func (m *Mem) PutVolumeSnapshot(r drivebay.SnapshotRecord) error {
	return m.putEntry(m.snapshots, "snapshot", r.Snapshot.ID, r)
}

// DeleteVolumeSnapshot deletes the record of a snapshot; a missing record is no error.
func (m *Mem) DeleteVolumeSnapshot(id string) error { return m.deleteEntry(m.snapshots, id) }

// Forgotten returns the volumes and snapshots that were forgotten, by key.
func (m *Mem) Forgotten() (map[string]drivebay.ForgottenVolume, error) {
	return shelved[drivebay.ForgottenVolume](m, m.forgotten, "forgotten volume")
}

// PutForgotten records that a volume or snapshot was forgotten.
func (m *Mem) PutForgotten(f drivebay.ForgottenVolume) error {
	return m.putEntry(m.forgotten, "forgotten volume", f.Key(), f)
}

// DeleteForgotten deletes such a record; a missing key is no error.
func (m *Mem) DeleteForgotten(key string) error { return m.deleteEntry(m.forgotten, key) }

// Remains returns the ranges in which moved volumes left data, by partition.
func (m *Mem) Remains() (map[string]drivebay.Remains, error) {
	return shelved[drivebay.Remains](m, m.remains, "remains")
}

// PutRemains stores the ranges of one partition in which moved volumes left data.
func (m *Mem) PutRemains(r drivebay.Remains) error {
	return m.putEntry(m.remains, "remains", r.Partition, r)
}

// DeleteRemains deletes the ranges of a partition; a missing record is no error.
func (m *Mem) DeleteRemains(partition string) error { return m.deleteEntry(m.remains, partition) }
