package metrics

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

type fixed struct{ snap *drivebay.Snapshot }

func (f fixed) Snapshot() *drivebay.Snapshot { return f.snap }

type fixedVolumes struct{ set *drivebay.VolumeSet }

func (f fixedVolumes) Volumes() *drivebay.VolumeSet { return f.set }

func ptr[T any](v T) *T { return &v }

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ataDrive, nvmeDrive and scsiDrive have something in every field that is shown.
func ataDrive(id string, attributes int) drivebay.Drive {
	ata := &drivebay.ATA{ErrorCount: ptr(uint64(3)), Statistics: []drivebay.Statistic{{Page: 7, Offset: 8, Name: "Percentage Used Endurance Indicator", Value: -1}}}
	for i := range attributes {
		ata.Attributes = append(ata.Attributes, drivebay.Attribute{ID: uint8(i + 181), Name: fmt.Sprintf("Attribute_%d", i), Value: 100, Worst: 99, Threshold: ptr(uint8(36)), Raw: math.MaxUint32, Count: uint64(i)})
	}
	return drivebay.Drive{
		ID: id, Name: "sda", Type: drivebay.TypeHDD, Transport: drivebay.TransportSATA, Protocol: drivebay.ProtocolATA,
		Identity: drivebay.Identity{Model: "ST4000NM", Serial: "S" + id, Size: 4e12},
		Paths:    []drivebay.Path{{Name: "sda", Dev: "/dev/sda", Address: "0:0:0:0"}},
		Slot:     drivebay.Slot{Enclosure: "0x500", Bay: "Slot 07"}, Status: drivebay.StatusOnline, Health: drivebay.HealthSuspect, System: true,
		Findings:    []drivebay.Finding{{Code: "ATAPending", Severity: drivebay.HealthSuspect}, {Code: "ATAPending", Severity: drivebay.HealthSuspect}},
		Temperature: ptr(41), PowerOnHours: ptr(uint64(10)), Wear: &drivebay.Wear{PercentUsed: 88, DaysLeft: ptr(2.0)},
		Evidence: &drivebay.Evidence{
			At: at, ATA: ata, Verdict: drivebay.VerdictPassed, PowerCycles: ptr(uint64(9)), BytesWritten: ptr(uint64(7)), BytesRead: ptr(uint64(6)), SelfTestProgress: ptr(90),
			SelfTests: []drivebay.SelfTest{{Kind: "short", Result: drivebay.SelfTestFailed}, {Kind: "short", Result: drivebay.SelfTestPassed}},
			Problems:  []drivebay.Problem{{Page: "a"}, {Page: "b", Expected: true}},
		},
		Kernel: &drivebay.Kernel{IOErrors: ptr(uint64(4)), IOTimeouts: ptr(uint64(1)), IODone: ptr(uint64(5)), Inflight: 2, Frozen: 1500 * time.Millisecond, Filesystems: []drivebay.FSError{{Device: "sda1", FS: "ext4", Errors: 2}}},
	}
}

func nvmeDrive(id string) drivebay.Drive {
	return drivebay.Drive{ID: id, Health: drivebay.HealthGood, Status: drivebay.StatusOffline, Evidence: &drivebay.Evidence{
		NVMe: &drivebay.NVMe{AvailableSpare: 99, PercentageUsed: 255, DataUnitsRead: 2, MediaErrors: 11, DataUnitsWritten: math.MaxUint64},
	}}
}

func scsiDrive(id string) drivebay.Drive {
	return drivebay.Drive{ID: id, Evidence: &drivebay.Evidence{SCSI: &drivebay.SCSI{
		ErrorCounters: map[string]drivebay.ErrorCounter{"read": {Uncorrected: 2, Corrected: 5}, "write": {Uncorrected: 1}},
		NonMedium:     ptr(uint64(57)), GrownDefects: ptr(uint64(8)), PendingDefects: ptr(uint64(0)), TripTemperature: ptr(68), StartStops: ptr(uint64(12)),
	}}}
}

func machine(drives ...drivebay.Drive) *drivebay.Snapshot {
	return &drivebay.Snapshot{
		Seq: 7, At: at, Complete: true, Machine: drivebay.Machine{Name: "rack", Kind: "simulated", Hardware: &drivebay.Hardware{Vendor: "ACME", Product: "R740", Serial: "ABC123", Chassis: drivebay.Chassis{AssetTag: "u12"}, BIOS: drivebay.BIOS{Version: "2.19"}}}, Drives: drives,
		Bays: []drivebay.Bay{{Slot: drivebay.Slot{Enclosure: "0x500", Bay: "Slot 07", Locate: "x", Lit: true}, Drive: "a"}, {Slot: drivebay.Slot{Bay: "Slot 08"}}},
	}
}

// someEdges have counted something of everything.
var someEdges = Edges{
	RPC: func() []RPC {
		return []RPC{{Service: "csi.v1.Node", Method: "NodeStageVolume", Code: "OK", Calls: 3, Sum: 1500 * time.Millisecond,
			Buckets: []Bucket{{10 * time.Millisecond, 1}, {time.Second, 2}}}}
	},
	Notices: func() []Notices {
		return []Notices{{Sink: "webhook", Delivered: 4, Failed: 2, Dropped: 1, Queued: 3}, {Sink: "command"}}
	},
}

func scrape(t testing.TB, snap *drivebay.Snapshot) string {
	t.Helper()
	return scrapeBoth(t, snap, nil)
}

func scrapeBoth(t testing.TB, snap *drivebay.Snapshot, volumes Volumes) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(fixed{snap}, volumes, someEdges, "v1.2.3", "abc").ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestValues(t *testing.T) {
	got := scrape(t, machine(ataDrive("a", 8), nvmeDrive("n"), scsiDrive("s")))
	for _, line := range []string{
		`drivebay_build_info{version="v1.2.3",commit="abc",goversion="go`,
		`drivebay_snapshot_sequence 7`,
		`drivebay_snapshot_timestamp_seconds 1.7723664e+09`,
		`drivebay_drives{health="SUSPECT"} 1`,
		`drivebay_drives{health="BAD"} 0`,
		`drivebay_bay_occupied{enclosure="0x500",bay="Slot 07"} 1`,
		`drivebay_bay_occupied{enclosure="",bay="Slot 08"} 0`,
		`drivebay_drive_info{drive="a",name="sda",path="/dev/sda",model="ST4000NM",vendor="",serial="Sa",firmware="",wwn="",type="HDD",transport="sata",protocol="ata",enclosure="0x500",bay="Slot 07",address="0:0:0:0",server="server ACME R740, serial ABC123"} 1`,
		`drivebay_machine_info{machine="rack",kind="simulated",vendor="ACME",product="R740",serial="ABC123",asset_tag="u12",bios="2.19"} 1`,
		`drivebay_drive_health{drive="a",health="SUSPECT"} 1`,
		`drivebay_drive_health{drive="a",health="GOOD"} 0`,
		`drivebay_drive_health{drive="s",health="UNKNOWN"} 1`,
		`drivebay_drive_finding{drive="a",code="ATAPending",severity="SUSPECT"} 1`,
		`drivebay_drive_online{drive="a"} 1`,
		`drivebay_drive_online{drive="n"} 0`,
		`drivebay_drive_temperature_celsius{drive="a"} 41`,
		`drivebay_drive_power_on_seconds_total{drive="a"} 36000`,
		`drivebay_drive_wear_ratio{drive="a"} 0.88`,
		`drivebay_drive_wear_forecast_seconds{drive="a"} 172800`,
		`drivebay_drive_media_errors_total{drive="a"} 6`,
		`drivebay_drive_media_errors_total{drive="n"} 11`,
		`drivebay_drive_media_errors_total{drive="s"} 3`,
		`drivebay_drive_evidence_problems{drive="a"} 1`,
		`drivebay_drive_selftest_last_result{drive="a",kind="short",result="failed"} 1`,
		`drivebay_drive_smart_attribute_raw{drive="a",id="187",name="Attribute_6"} 6`,
		`drivebay_drive_smart_attribute_threshold{drive="a",id="181",name="Attribute_0"} 36`,
		`drivebay_drive_ata_statistic{drive="a",page="7",offset="8",name="Percentage Used Endurance Indicator"} -1`,
		`drivebay_drive_nvme_available_spare_ratio{drive="n"} 0.99`,
		`drivebay_drive_nvme_used_ratio{drive="n"} 2.55`,
		`drivebay_drive_nvme_read_bytes_total{drive="n"} 1.024e+06`,
		`drivebay_drive_scsi_uncorrected_errors_total{drive="s",operation="read"} 2`,
		`drivebay_drive_kernel_frozen_seconds{drive="a"} 1.5`,
		`drivebay_drive_filesystem_errors_total{drive="a",device="sda1",fs="ext4"} 2`,
		`# TYPE drivebay_rpc_duration_seconds histogram`,
		`drivebay_rpc_duration_seconds_bucket{service="csi.v1.Node",method="NodeStageVolume",code="OK",le="0.01"} 1`,
		`drivebay_rpc_duration_seconds_bucket{service="csi.v1.Node",method="NodeStageVolume",code="OK",le="1"} 2`,
		`drivebay_rpc_duration_seconds_bucket{service="csi.v1.Node",method="NodeStageVolume",code="OK",le="+Inf"} 3`,
		`drivebay_rpc_duration_seconds_sum{service="csi.v1.Node",method="NodeStageVolume",code="OK"} 1.5`,
		`drivebay_rpc_duration_seconds_count{service="csi.v1.Node",method="NodeStageVolume",code="OK"} 3`,
		`drivebay_notices_total{sink="webhook",result="delivered"} 4`,
		`drivebay_notices_total{sink="webhook",result="dropped"} 1`,
		`drivebay_notice_failures_total{sink="webhook"} 2`,
		`drivebay_notices_queued{sink="webhook"} 3`,
		`drivebay_notices_queued{sink="command"} 0`,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains(got, "\n"+line) {
			t.Errorf("not there: %s", line)
		}
	}
	for _, line := range []string{`drivebay_drive_online{drive="s"}`, `result="passed"`, `wear_ratio{drive="n"}`} {
		if strings.Contains(got, line) {
			t.Errorf("there, and should not be: %s", line)
		}
	}
}

// TestOddDrives has everything that would spoil a page: drives that share an id,
// names that are no UTF-8, rows that come twice.
func TestOddDrives(t *testing.T) {
	odd := ataDrive("a", 4)
	odd.Model = "bad \xff\xfe \" \\ \n name"
	odd.Evidence.ATA.Attributes = append(odd.Evidence.ATA.Attributes, odd.Evidence.ATA.Attributes...)
	odd.Evidence.ATA.Statistics = append(odd.Evidence.ATA.Statistics, odd.Evidence.ATA.Statistics...)
	odd.Kernel.Filesystems = append(odd.Kernel.Filesystems, odd.Kernel.Filesystems...)
	snap := machine(odd, odd, ataDrive("a", 6), drivebay.Drive{}, drivebay.Drive{ID: "\xff"}, drivebay.Drive{ID: "\xfe"})
	snap.Bays = append(snap.Bays, snap.Bays...)
	got := scrape(t, snap)
	seen := map[string]bool{}
	for line := range strings.Lines(got) {
		name := line[:strings.LastIndex(line, " ")]
		if !strings.HasPrefix(line, "#") && seen[name] {
			t.Errorf("twice: %s", name)
		}
		seen[name] = true
	}
	if !strings.Contains(got, `model="bad `+"\uFFFD"+` \" \\ \n name"`) {
		t.Error("the odd model is not there")
	}
	check(t, got)
}

func TestEmptySnapshot(t *testing.T) {
	if got := scrape(t, &drivebay.Snapshot{}); !strings.Contains(got, "\ndrivebay_snapshot_sequence 0\n") {
		t.Errorf("before the first look:\n%s", got)
	}
}

// promtool finds the tool or skips; where CI runs it must be there.
func promtool(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("promtool is not here (Debian package prometheus)")
	}
	return tool
}

// check lints our part of a page; the Go and process metrics are not ours to name.
func check(t *testing.T, page string) {
	t.Helper()
	var ours strings.Builder
	for line := range strings.Lines(page) {
		if strings.Contains(line, "drivebay_") {
			ours.WriteString(line)
		}
	}
	cmd := exec.Command(promtool(t), "check", "metrics")
	cmd.Stdin = strings.NewReader(ours.String())
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

func TestPromtoolCheckMetrics(t *testing.T) {
	check(t, scrape(t, machine(ataDrive("a", 8), nvmeDrive("n"), scsiDrive("s"))))
}

// hundred is a full machine: 60 SATA, 20 NVMe, 20 SAS.
func hundred() *drivebay.Snapshot {
	var drives []drivebay.Drive
	for i := range 100 {
		id := fmt.Sprintf("naa-5000c500a1b2c%03d", i)
		switch {
		case i < 60:
			drives = append(drives, ataDrive(id, 24))
		case i < 80:
			drives = append(drives, nvmeDrive(id))
		default:
			drives = append(drives, scsiDrive(id))
		}
	}
	return machine(drives...)
}

func BenchmarkScrape100(b *testing.B) {
	h := Handler(fixed{hundred()}, nil, Edges{}, "v", "c")
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		b.SetBytes(int64(w.Body.Len()))
	}
}

// TestLastCompletedSelfTest: a test that is running or was aborted proves nothing, and takes no alert back.
func TestLastCompletedSelfTest(t *testing.T) {
	e := &drivebay.Evidence{SelfTests: []drivebay.SelfTest{{Kind: "long", Result: drivebay.SelfTestRunning}, {Kind: "long", Result: drivebay.SelfTestAborted}, {Kind: "long", Result: drivebay.SelfTestFailed}, {Kind: "long", Result: drivebay.SelfTestPassed}}}
	var got []string
	lastSelfTests(e, func(_ float64, labels ...string) { got = append(got, strings.Join(labels, " ")) })
	if strings.Join(got, ", ") != "long failed" {
		t.Errorf("%q", got)
	}
}
