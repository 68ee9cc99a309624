package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// recording writes the sysfs of a machine with two disks of which nothing but
// sysfs was recorded.
func recording(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{}
	disk := func(name, host, serial, wwid string) {
		dev := "sys/devices/pci0000:00/0000:00:17.0/ata" + host + "/host" + host + "/target" + host + ":0:0/" + host + ":0:0:0"
		for file, text := range map[string]string{
			"model": "ST4000NM0033-9ZM", "vendor": "ATA", "rev": "SN06", "state": "running", "type": "0", "wwid": wwid,
			"vpd_pg80":                "\x00\x80\x00\x08" + serial,
			"block/" + name + "/size": "7814037168", "block/" + name + "/removable": "0", "block/" + name + "/ro": "0", "block/" + name + "/dev": "8:" + host,
			"block/" + name + "/queue/rotational": "1", "block/" + name + "/queue/logical_block_size": "512", "block/" + name + "/queue/physical_block_size": "4096",
			"block/" + name + "/stat": "1 2 3 4 5 6 7 8 9 10 11", "block/" + name + "/inflight": "0 0",
		} {
			files[dev+"/"+file] = text + "\n"
		}
		link(t, root, "sys/block/"+name, "../"+strings.TrimPrefix(dev, "sys/")+"/block/"+name)
		link(t, root, dev+"/block/"+name+"/device", "../..")
		link(t, root, dev+"/block/"+name+"/subsystem", strings.Repeat("../", strings.Count(dev, "/")+2)+"sys/class/block")
		link(t, root, dev+"/subsystem", strings.Repeat("../", strings.Count(dev, "/"))+"sys/bus/scsi")
	}
	disk("sda", "1", "Z1Z2AAAA", "naa.5000c500a1b2c3d4")
	disk("sdb", "2", "Z1Z2BBBB", "naa.5000c500a1b2c3d5")
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, root, name, target string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestRecordedMachine(t *testing.T) {
	root := recording(t)
	out, errs, code := call(t, nil, "drives", "--root", root, "-o", "json")
	var s drivebay.Snapshot
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		t.Fatalf("exit status %d, %v: %s", code, err, errs)
	}
	if s.Machine.Kind != "recorded" || !s.Complete || len(s.Drives) != 2 {
		t.Fatalf("got %s", out)
	}
	d := s.Drives[0]
	if d.ID != "naa-5000c500a1b2c3d4" || d.Name != "sda" || d.Serial != "Z1Z2AAAA" || d.Type != drivebay.TypeHDD || d.Size != 7814037168*512 {
		t.Errorf("got %+v", d)
	}
	// Its health pages were not recorded: nobody knows, and that is what is said.
	if d.Health != drivebay.HealthUnknown || d.Content.Kind != drivebay.ContentUnknown || len(d.Findings) == 0 {
		t.Errorf("health %v, content %v, findings %v", d.Health, d.Content, d.Findings)
	}
	for args, want := range map[string]string{
		"explain Z1Z2BBBB":  "UNKNOWN",
		"smart sda --raw":   "not part of the recording",
		"drive show sdb":    "ST4000NM0033-9ZM",
		"smart sdb -o json": `"source"`,
	} {
		out, errs, code := call(t, nil, append(strings.Fields(args), "--root", root)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit status %d, %q is not in %q %q", args, code, want, out, errs)
		}
	}
	for args, want := range map[string]string{
		"drive cordon sda":      "without the daemon",
		"drive acknowledge sda": "without the daemon",
		"events":                "without the daemon",
		"selftest sda short":    "self-test short",
		"locate sda on":         "the bay of the drive is not known",
	} {
		_, errs, code := call(t, nil, append(strings.Fields(args), "--root", root)...)
		if code != exitFailure || !strings.Contains(errs, want) {
			t.Errorf("%s: exit status %d, %q is not in %q", args, code, want, errs)
		}
	}
}

func TestAssess(t *testing.T) {
	root := recording(t)
	doc := filepath.Join(t.TempDir(), "sda.json")
	write(t, doc, `{"json_format_version":[1,0],"smartctl":{"version":[7,3],"exit_status":8},"device":{"name":"/dev/sda","type":"sat","protocol":"ATA"},
		"model_name":"Disk","serial_number":"S1","rotation_rate":7200,"smart_support":{"available":true,"enabled":true},"smart_status":{"passed":false},"power_on_time":{"hours":5}}`)
	out, errs, code := call(t, nil, "assess", "-o", "json", doc, "/nowhere.json", root)
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, errs)
	}
	var got []map[string]any
	for line := range strings.Lines(out) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, v)
	}
	if len(got) != 4 {
		t.Fatalf("%d lines, want the document, the error and two drives:\n%s", len(got), out)
	}
	if got[0]["health"] != "BAD" || got[0]["serial"] != "S1" || got[0]["file"] != doc {
		t.Errorf("the failed drive: %v", got[0])
	}
	if got[1]["error"] == nil || got[1]["file"] != "/nowhere.json" {
		t.Errorf("the missing file: %v", got[1])
	}
	if got[2]["serial"] != "Z1Z2AAAA" || got[3]["serial"] != "Z1Z2BBBB" || got[2]["health"] == "GOOD" {
		t.Errorf("the recorded drives: %v %v", got[2], got[3])
	}
	if out, _, code := call(t, nil, "assess", doc); code != 0 || !strings.HasPrefix(out, "BAD      "+doc+"  Disk  S1  ") {
		t.Errorf("table: %d %q", code, out)
	}
	if out, _, code := call(t, nil, "assess", "--table", doc); code != 0 || !strings.Contains(out, "HDD") {
		t.Errorf("count: %d %q", code, out)
	}
	bad := filepath.Join(t.TempDir(), "t.yaml")
	write(t, bad, "thresholds: {wearUsed: 200}\n")
	if _, errs, code := call(t, nil, "assess", "--thresholds", bad, doc); code != exitFailure || !strings.Contains(errs, bad+":1:") {
		t.Errorf("bad thresholds: %d %q", code, errs)
	}
}

// A real guest's sysfs: every drive of it, and none of what is no drive.
func TestCorpusMachine(t *testing.T) {
	dir := os.Getenv("DRIVEBAY_CORPUS")
	if dir == "" {
		dir = "../../../shared/corpus"
		if _, err := os.Stat(dir); err != nil {
			t.Skip("no corpus of real machines here (set DRIVEBAY_CORPUS)")
		}
	}
	out, errs, code := call(t, nil, "drives", "--root", filepath.Join(dir, "vm-recording", "sysroot"), "-o", "json")
	var s drivebay.Snapshot
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		t.Fatalf("exit status %d, %v: %s", code, err, errs)
	}
	names := map[string]bool{}
	for _, d := range s.Drives {
		names[d.Name] = true
	}
	for _, want := range []string{"nvme0n1", "sda", "sdb", "sdc", "sdd", "vda", "vdb"} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
	if len(s.Drives) != 7 {
		t.Errorf("%d drives, want 7: %v", len(s.Drives), names)
	}
}
