package metrics

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
)

// mirrored has something in every field that is shown.
func mirrored(id string) *drivebay.VolumeView {
	bad, good := ataDrive("a", 0), nvmeDrive("n")
	bad.Health, good.Status = drivebay.HealthBad, drivebay.StatusOnline
	f := drivebay.Facts{
		Complete: true, Drives: []drivebay.Drive{bad, good},
		Volume: drivebay.Volume{ID: id, Name: "data", Node: "rack", Size: 4096, Mode: drivebay.ModeFS, FSType: "ext4", CSIStatus: drivebay.CSIPublished, Usage: drivebay.VolumeInUse,
			Location:     drivebay.Location{Kind: drivebay.LocationMirror, Drives: []string{"a", "n"}},
			Publications: []drivebay.Publication{{Path: "/staging", Staging: true}, {Path: "/target"}}},
		FS: &drivebay.FSFacts{Errors: 2, Bytes: ptr(uint64(1000)), Free: ptr(uint64(400)), Inodes: ptr(uint64(50)), FreeInodes: ptr(uint64(7)), Scrub: &drivebay.Scrub{At: at, Corrupt: 1}},
		IO: &drivebay.IOFacts{Frozen: 2500 * time.Millisecond, Errors: 3},
		LV: &drivebay.LVFacts{SyncPercent: ptr(75.0)},
		Replication: &drivebay.ReplicationInfo{Status: drivebay.ReplicationError, Primary: true, State: "split brain", Message: "both sides were written", OutOfSync: 4096, Conflict: drivebay.SplitBrain,
			ReplicationPast: drivebay.ReplicationPast{LastSync: at, Bytes: 8192, Duration: 1500 * time.Millisecond}},
	}
	f.Volume.Health = condition.HealthOf(f)
	f.Volume.OperationalStatus = condition.OperationalStatusOf(f)
	return &drivebay.VolumeView{Volume: f.Volume, Condition: condition.Of(f), Facts: &f}
}

func TestVolumeValues(t *testing.T) {
	thin := mirrored("v2")
	thin.Facts = &drivebay.Facts{LV: &drivebay.LVFacts{DataPercent: ptr(50.0), MetadataPercent: ptr(5.0)}}
	thin.Condition = nil
	bare := &drivebay.VolumeView{Volume: drivebay.Volume{ID: "v3", Name: "odd \" \xff name"}}
	got := scrapeBoth(t, machine(), fixedVolumes{&drivebay.VolumeSet{
		Seq: 1, At: at, Volumes: []*drivebay.VolumeView{mirrored("v1"), thin, bare}, Problems: []string{"x"},
		Snapshots: []drivebay.VolumeSnapshot{{}, {Unavailable: "drive n is not here"}}, Found: []drivebay.FoundVolume{{}, {}, {Issue: "two drives have it"}},
	}})
	for _, line := range []string{
		`drivebay_volumes{status="UNKNOWN"} 1`,
		`drivebay_volumes{status="OPERATIVE"} 2`,
		`drivebay_volumes{status="MISSING"} 0`,
		`drivebay_volumes_abnormal 1`,
		`drivebay_volumes_timestamp_seconds 1.7723664e+09`,
		`drivebay_volumes_problems 1`,
		`drivebay_snapshots 2`,
		`drivebay_snapshots_unavailable 1`,
		`drivebay_volumes_found{issue="true"} 1`,
		`drivebay_volumes_found{issue="false"} 2`,
		`drivebay_volume_info{volume="v1",name="data",node="rack",mode="FS",fs="ext4",backing="LVM_MIRROR"} 1`,
		`drivebay_volume_info{volume="v3",name="odd \" ` + "\uFFFD" + ` name",node="",mode="UNKNOWN",fs="",backing="UNKNOWN"} 1`,
		`drivebay_volume_drive{volume="v1",drive="n"} 1`,
		`drivebay_volume_size_bytes{volume="v1"} 4096`,
		`drivebay_volume_health{volume="v1",health="BAD"} 1`,
		`drivebay_volume_health{volume="v1",health="GOOD"} 0`,
		`drivebay_volume_condition{volume="v1",severity="DEGRADED",reason="DiskFailure"} 1`,
		`drivebay_volume_condition{volume="v1",severity="DEGRADED",reason="MirrorOutOfSync"} 1`,
		`drivebay_volume_status{volume="v1",status="OPERATIVE"} 1`,
		`drivebay_volume_csi_status{volume="v1",status="PUBLISHED"} 1`,
		`drivebay_volume_usage{volume="v1",usage="IN_USE"} 1`,
		`drivebay_volume_published_paths{volume="v1"} 1`,
		`drivebay_volume_filesystem_size_bytes{volume="v1"} 1000`,
		`drivebay_volume_filesystem_free_bytes{volume="v1"} 400`,
		`drivebay_volume_filesystem_inodes{volume="v1"} 50`,
		`drivebay_volume_filesystem_free_inodes{volume="v1"} 7`,
		`drivebay_volume_filesystem_errors{volume="v1"} 2`,
		`drivebay_volume_filesystem_check_timestamp_seconds{volume="v1"} 1.7723664e+09`,
		`drivebay_volume_filesystem_check_corrupt{volume="v1"} 1`,
		`drivebay_volume_frozen_seconds{volume="v1"} 2.5`,
		`drivebay_volume_io_errors{volume="v1"} 3`,
		`drivebay_volume_mirror_sync_ratio{volume="v1"} 0.75`,
		`drivebay_volume_condition{volume="v1",severity="DEGRADED",reason="ReplicationConflict"} 1`,
		`drivebay_volume_replication_state{volume="v1",role="primary",state="split brain"} 1`,
		`drivebay_volume_replication_connected{volume="v1"} 0`,
		`drivebay_volume_replication_out_of_sync_bytes{volume="v1"} 4096`,
		`drivebay_volume_replication_last_sync_timestamp_seconds{volume="v1"} 1.7723664e+09`,
		`drivebay_volume_replication_resync_bytes{volume="v1"} 8192`,
		`drivebay_volume_replication_resync_seconds{volume="v1"} 1.5`,
		`drivebay_volume_pool_data_ratio{volume="v2"} 0.5`,
		`drivebay_volume_pool_metadata_ratio{volume="v2"} 0.05`,
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("not there: %s", line)
		}
	}
	for _, line := range []string{`drivebay_volume_condition{volume="v2"`, `filesystem_size_bytes{volume="v2"`, `filesystem_errors{volume="v3"`, `pool_data_ratio{volume="v1"`, `replication_connected{volume="v2"`} {
		if strings.Contains(got, line) {
			t.Errorf("there, and should not be: %s", line)
		}
	}
	check(t, got)
}

func TestNoVolumes(t *testing.T) {
	if got := scrape(t, machine()); strings.Contains(got, "drivebay_volume") {
		t.Error("volumes where there is no engine for them")
	}
	if got := scrapeBoth(t, machine(), fixedVolumes{&drivebay.VolumeSet{}}); !strings.Contains(got, "\ndrivebay_volumes_timestamp_seconds 0\n") {
		t.Errorf("before the first look:\n%s", got)
	}
}

func BenchmarkScrape1000Volumes(b *testing.B) {
	set := &drivebay.VolumeSet{}
	for i := range 1000 {
		set.Volumes = append(set.Volumes, mirrored(fmt.Sprintf("v%04d", i)))
	}
	h := Handler(fixed{machine()}, fixedVolumes{set}, Edges{}, "v", "c")
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		b.SetBytes(int64(w.Body.Len()))
	}
}
