package storetest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// Volume is the record of a volume with something in every part of it.
func Volume(id string) drivebay.VolumeRecord {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	return drivebay.VolumeRecord{
		Volume: drivebay.Volume{
			ID: id, Name: "pvc-" + id + " \u2028 \"x\"", Node: "n1", Size: 1 << 30, Mode: drivebay.ModeFS, FSType: "xfs", FSUUID: "6f0c",
			Parameters: map[string]string{drivebay.ParameterWipe: "zero"}, Source: drivebay.Source{Snapshot: "s"}, Created: at,
			Location:     drivebay.Location{Kind: drivebay.LocationThin, Drives: []string{"naa-1", "naa-2"}, VG: "drivebay-a", LV: "drivebay-" + id, Pool: "drivebay-pool"},
			Health:       drivebay.HealthSuspect,
			CSIStatus:    drivebay.CSIFailed,
			Usage:        drivebay.VolumeReleasing,
			Publications: []drivebay.Publication{{Path: "/a/b", Staging: true, Access: drivebay.AccessMultiWriter, Flags: "x", Since: at}},
			Failure:      &drivebay.Failure[drivebay.CSIStatus]{Before: drivebay.CSIResizing, Cause: "c", Since: at, Tries: 3, Retry: drivebay.RetryTimed, Next: at.Add(time.Hour)},
			UsageFailure: &drivebay.Failure[drivebay.VolumeUsage]{Before: drivebay.VolumeReleasing, Cause: "d", Since: at, Tries: 1, Retry: drivebay.RetryOperator},
			Lost:         &drivebay.Lost{At: at, Drive: "naa-1", Bytes: 512, Count: 1, Extents: []drivebay.Extent{{Offset: 4096, Length: 512}}},
		},
		Work: &drivebay.Work{Op: drivebay.WorkExpand, Since: at, Size: 2 << 30, PVs: map[string]string{"naa-1": "u"}, Made: []string{"wipe"},
			Move: &drivebay.Move{From: drivebay.Location{Partition: "p"}, Name: "n", Accepted: true}},
	}
}

func snapshot(id string) drivebay.SnapshotRecord {
	v := Volume("v")
	return drivebay.SnapshotRecord{
		Snapshot: drivebay.VolumeSnapshot{ID: id, Name: "snap " + id, Source: "v", Node: "n1", Size: 5, Created: v.Volume.Created, Location: v.Volume.Location, FSType: "xfs", Block: true},
		Work:     v.Work,
	}
}

func testVolumes(t *testing.T, st Store) {
	check(t, errors.Join(st.PutVolume(Volume("a")), st.PutVolume(Volume("b")), st.PutVolume(Volume("c"))))
	changed := Volume("b")
	changed.Work = nil
	check(t, errors.Join(st.PutVolume(changed), st.DeleteVolume("c"), st.DeleteVolume("never there")))
	want := map[string]drivebay.VolumeRecord{"a": Volume("a"), "b": changed}
	got := must(st.Volumes())(t)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	got["a"].Volume.Publications[0].Path = "changed by the caller"
	if again := must(st.Volumes())(t); !reflect.DeepEqual(again, want) {
		t.Error("changing what was got changed the store")
	}
	if err := st.PutVolume(drivebay.VolumeRecord{}); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("a volume without an id: %v", err)
	}
}

func testVolumeSnapshots(t *testing.T, st Store) {
	check(t, errors.Join(st.PutVolumeSnapshot(snapshot("a")), st.PutVolumeSnapshot(snapshot("b")), st.PutVolume(Volume("a"))))
	check(t, errors.Join(st.DeleteVolumeSnapshot("b"), st.DeleteVolumeSnapshot("never there")))
	if got := must(st.VolumeSnapshots())(t); !reflect.DeepEqual(got, map[string]drivebay.SnapshotRecord{"a": snapshot("a")}) {
		t.Errorf("got %+v", got)
	}
	if got := must(st.Volumes())(t); len(got) != 1 {
		t.Errorf("a volume and a snapshot of one id: %v", got)
	}
	if err := st.PutVolumeSnapshot(drivebay.SnapshotRecord{}); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("a snapshot without an id: %v", err)
	}
}
