package compare

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// pair is one drive of the lab as two witnesses saw it: smartctl 7.3 -x -j, and
// `drivebay drive show -o json`, recorded from one guest with nothing between.
type pair struct {
	name     string
	document []byte
	drive    drivebay.Drive
}

func pairs(t *testing.T) []pair {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.smartctl.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded pairs: %v", err)
	}
	var out []pair
	for _, file := range files {
		p := pair{name: strings.TrimSuffix(filepath.Base(file), ".smartctl.json")}
		if p.document, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		ours, err := os.ReadFile(strings.Replace(file, ".smartctl.", ".drivebay.", 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(ours, &p.drive); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, p)
	}
	return out
}

func paths(differences []Difference) []string {
	var out []string
	for _, d := range differences {
		out = append(out, d.Path)
	}
	return out
}

func TestRecordedPairsAgree(t *testing.T) {
	for _, p := range pairs(t) {
		compared, differences := Evidence(p.document, p.drive)
		if compared < 10 {
			t.Errorf("%s: only %d leaves compared", p.name, compared)
		}
		if len(differences) > 0 {
			t.Errorf("%s: %d leaves compared, differences %v", p.name, compared, differences)
		}
	}
}

// change returns the document with another value at one path.
func change(t *testing.T, document []byte, path string) []byte {
	t.Helper()
	var root any
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		t.Fatal(err)
	}
	steps := strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
	b, err := json.Marshal(changed(root, steps))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func changed(v any, steps []string) any {
	switch v := v.(type) {
	case map[string]any:
		v[steps[0]] = changed(v[steps[0]], steps[1:])
		return v
	case []any:
		i, _ := strconv.Atoi(strings.Trim(steps[0], "[]"))
		v[i] = changed(v[i], steps[1:])
		return v
	case bool:
		return !v
	case json.Number:
		n, _ := v.Int64()
		return n + 1
	case string:
		return v + "1"
	}
	return "was nothing"
}

func TestUnknownLeafIsNamed(t *testing.T) {
	for _, p := range pairs(t) {
		document := bytes.Replace(p.document, []byte("{"), []byte(`{"drive_mood":{"today":"bad"},`), 1)
		_, differences := Evidence(document, p.drive)
		if !slices.Contains(differences, Difference{"drive_mood.today", "bad", "not looked at"}) {
			t.Errorf("%s: %v", p.name, differences)
		}
	}
}

// TestNothingOfOursAgrees: a drive of which we published nothing may agree with
// its document only where that says "no" itself.
func TestNothingOfOursAgrees(t *testing.T) {
	for _, p := range pairs(t) {
		doc, err := read(p.document)
		if err != nil {
			t.Fatal(err)
		}
		empty := drivebay.Drive{ID: "empty", Evidence: &drivebay.Evidence{}}
		_, differences := Evidence(p.document, empty)
		for _, l := range doc.leaves {
			if !slices.Contains(paths(differences), l.path) && !tableOf(doc).exempted(&empty, l) && l.text != "false" {
				t.Errorf("%s: %s is %q, and nothing of ours agrees", p.name, l.path, l.text)
			}
		}
	}
}

func TestNothingToCompare(t *testing.T) {
	drive := drivebay.Drive{ID: "naa-1", Evidence: &drivebay.Evidence{}}
	for name, document := range map[string]string{
		"no document":   ``,
		"cut off":       `{"model_name": "LAB`,
		"two documents": `{} {}`,
		"no drive":      `{"smartctl": {"exit_status": 2}}`,
	} {
		if compared, differences := Evidence([]byte(document), drive); compared != 0 || len(differences) != 1 {
			t.Errorf("%s: %d compared, %v", name, compared, differences)
		}
	}
	compared, differences := Evidence([]byte(`{"model_name": "LABDISK"}`), drivebay.Drive{ID: "naa-1"})
	if compared != 1 || len(differences) != 2 {
		t.Errorf("no evidence: %d compared, %v", compared, differences)
	}
}

// TestWideCounters: beyond 2^53 smartctl writes a number twice, beyond 2^64 we
// hold ours at the largest.
func TestWideCounters(t *testing.T) {
	const document = `{"device": {"protocol": "NVMe"}, "nvme_composite_temperature_threshold": {"warning": 70, "critical": 85},
		"nvme_smart_health_information_log": {"host_reads": 18446744073709551614, "host_reads_s": "18446744073709551614",
			"host_writes": 340282366920938463463374607431768211455, "host_writes_s": "340282366920938463463374607431768211455"}}`
	drive := drivebay.Drive{Protocol: drivebay.ProtocolNVMe, Evidence: &drivebay.Evidence{Protocol: drivebay.ProtocolNVMe,
		NVMe: &drivebay.NVMe{HostReads: math.MaxUint64 - 1, HostWrites: math.MaxUint64, WarningTemp: 70, CriticalTemp: 85}}}
	if compared, differences := Evidence([]byte(document), drive); compared != 7 || differences != nil {
		t.Errorf("%d compared, %v", compared, differences)
	}
	drive.Evidence.NVMe.HostReads, drive.Evidence.NVMe.HostWrites = math.MaxUint64, math.MaxUint64-1
	log := "nvme_smart_health_information_log."
	if _, differences := Evidence([]byte(document), drive); !slices.Equal(paths(differences), []string{log + "host_reads", log + "host_reads_s", log + "host_writes", log + "host_writes_s"}) {
		t.Errorf("%v", differences)
	}
}

// TestPublishedAndEvidenceMustAgree: the drive and its evidence are both published.
func TestPublishedAndEvidenceMustAgree(t *testing.T) {
	drive := drivebay.Drive{Identity: drivebay.Identity{Serial: "A"}, Evidence: &drivebay.Evidence{Identity: drivebay.Identity{Serial: "B"}}}
	_, differences := Evidence([]byte(`{"serial_number": "A"}`), drive)
	if len(differences) != 1 || differences[0].String() != `serial_number: want "A", ours "A, but B in the evidence"` {
		t.Errorf("%v", differences)
	}
}

// TestTables: an exempt part that covers a compared leaf would silence it.
func TestTables(t *testing.T) {
	for family, own := range map[string]table{"ATA": {ataRows, ataExempts}, "NVMe": {nvmeRows, nvmeExempts}, "SCSI": {scsiRows, scsiExempts}} {
		seen := map[string]bool{}
		rows, exempts := slices.Concat(commonRows, own.rows), slices.Concat(commonExempts, own.exempts)
		for _, r := range rows {
			if seen[r.kind] {
				t.Errorf("%s: two rows for %s", family, r.kind)
			}
			seen[r.kind] = true
		}
		for _, e := range exempts {
			if len(strings.Fields(e.why)) < 3 {
				t.Errorf("%s: no reason to exempt %s", family, e.kind)
			}
			for _, r := range rows {
				if e.when == nil && (r.kind == e.kind || strings.HasPrefix(r.kind, e.kind+".")) {
					t.Errorf("%s: %s is compared, and exempt by %s", family, r.kind, e.kind)
				}
			}
		}
	}
}

// TestSCSIByHand: what none of the recorded drives says, each both ways.
func TestSCSIByHand(t *testing.T) {
	trip, warm := 65, 38
	drive := drivebay.Drive{Protocol: drivebay.ProtocolSCSI, Transport: drivebay.TransportSAS, Temperature: &warm, Evidence: &drivebay.Evidence{
		Protocol: drivebay.ProtocolSCSI, Temperature: &warm, SCSI: &drivebay.SCSI{TripTemperature: &trip}}}
	for document, want := range map[string][]string{
		`"scsi_transport_protocol": {"value": 6}`: nil,
		`"scsi_transport_protocol": {"value": 0}`: {"scsi_transport_protocol.value"},
		`"scsi_temperature": {"drive_trip": 65}`:  nil,
		`"scsi_temperature": {"drive_trip": 0}`:   {"scsi_temperature.drive_trip"}, // no page for smartctl, and one for us
		`"temperature": {"current": 0}`:           {"temperature.current"},
	} {
		_, differences := Evidence([]byte(`{"device": {"protocol": "SCSI"}, `+document+`}`), drive)
		if !slices.Equal(paths(differences), want) {
			t.Errorf("%s: %v", document, differences)
		}
	}
}

// TestSelfTestUnderWay: one side alone that knows of a running self-test is a difference.
func TestSelfTestUnderWay(t *testing.T) {
	status := "ata_smart_data.self_test.status."
	left := 40
	for name, want := range map[string][]string{"sat-testing": {status + "value", status + "remaining_percent"}, "ata-hdd": {status + "value"}} {
		for _, p := range pairs(t) {
			if p.name != name {
				continue
			}
			if p.drive.Evidence.SelfTestProgress == nil {
				p.drive.Evidence.SelfTestProgress = &left
			} else {
				p.drive.Evidence.SelfTestProgress = nil
			}
			_, differences := Evidence(p.document, p.drive)
			for _, path := range want {
				if !slices.Contains(paths(differences), path) {
					t.Errorf("%s: %s is not named: %v", name, path, differences)
				}
			}
		}
	}
}
