package assess

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// doc is a document of one disk with so many reallocated sectors.
func doc(serial string, reallocated int) string {
	return fmt.Sprintf(`{"device":{"type":"sat","protocol":"ATA"},"model_name":"M","serial_number":%q,"rotation_rate":7200,"smart_status":{"passed":true},`+
		`"ata_smart_attributes":{"table":[{"id":5,"name":"Reallocated_Sector_Ct","value":100,"worst":100,"thresh":10,"when_failed":"","raw":{"value":%d,"string":"%d"}}]}}`, serial, reallocated, reallocated)
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// said is a verdict in a line: "file serial health" or "file: error".
func said(dir string, v Verdict) string {
	file := strings.TrimPrefix(v.File, dir+string(filepath.Separator))
	if v.Err != nil {
		return file + ": " + v.Err.Error()
	}
	return fmt.Sprintf("%s %s %v", file, v.Serial, v.Health)
}

func TestFiles(t *testing.T) {
	long := strings.Repeat("x", maxDocument+1)
	tests := map[string]struct {
		name, content string
		want          []string
	}{
		"document":           {"a.json", doc("A", 0), []string{"a.json A GOOD"}},
		"pretty document":    {"a.json", "\xEF\xBB\xBF\n" + strings.ReplaceAll(doc("A", 99), ",", ",\n"), []string{"a.json A SUSPECT"}},
		"zipped document":    {"a.json.gz", zipped(doc("A", 0)), []string{"a.json.gz A GOOD"}},
		"any name":           {"report", doc("A", 0), []string{"report A GOOD"}},
		"array":              {"a.json", "[" + doc("A", 0) + "," + doc("B", 2000) + "]", []string{"a.json:1 A GOOD", "a.json:2 B BAD"}},
		"array with rubbish": {"a.json", `[7,` + doc("A", 0) + `]`, []string{"a.json:1: smartctl document: invalid: not an object", "a.json:2 A GOOD"}},
		"array cut off":      {"a.json", "[" + doc("A", 0), []string{"a.json:1 A GOOD", "a.json:2: array of documents: truncated"}},
		"empty array":        {"a.json", "[]", []string{"a.json: invalid: contains no document"}},
		"several":            {"a.json", doc("A", 0) + "\n" + doc("B", 0), []string{"a.json:1 A GOOD", "a.json:2 B GOOD"}},
		"cut off":            {"a.json", doc("A", 0)[:40], []string{"a.json: smartctl document: truncated"}},
		"empty":              {"a.json", " \n", []string{"a.json: invalid: empty file"}},
		"foreign":            {"README", "hello", []string{"README: invalid: neither a smartctl document nor raw ATA blocks nor a recording"}},
		"lines":              {"a.jsonl", doc("A", 0) + "\n\n" + doc("B", 0)[:9] + "\n" + doc("C", 0), []string{"a.jsonl:1 A GOOD", "a.jsonl:3: smartctl document: truncated", "a.jsonl:4 C GOOD"}},
		"lines of Windows":   {"a.jsonl", "\xEF\xBB\xBF" + doc("A", 0) + "\r\n\r\n" + doc("B", 0), []string{"a.jsonl:1 A GOOD", "a.jsonl:3 B GOOD"}},
		"mostly empty lines": {"a.jsonl", strings.Repeat("\n", 20_000_000) + doc("A", 0) + "\n\n\n", []string{"a.jsonl:20000001 A GOOD"}},
		"one line":           {"a.jsonl", doc("A", 0) + "\n", []string{"a.jsonl:1 A GOOD"}},
		"zipped lines":       {"a.jsonl.gz", zipped(doc("A", 0) + "\r\n" + doc("B", 0) + "\r\n"), []string{"a.jsonl.gz:1 A GOOD", "a.jsonl.gz:2 B GOOD"}},
		"line too long":      {"a.jsonl", long + "\n" + doc("B", 0), []string{"a.jsonl:1: invalid: longer than 16 MiB", "a.jsonl:2 B GOOD"}},
		"last line too long": {"a.jsonl", doc("A", 0) + "\n" + long, []string{"a.jsonl:1 A GOOD", "a.jsonl:2: invalid: longer than 16 MiB"}},
		"zip cut off":        {"a.jsonl.gz", zipped(doc("A", 0) + "\n")[:100], []string{"a.jsonl.gz:1: unexpected EOF"}},
		"no zip":             {"a.gz", "\x1f\x8bnothing of the kind", []string{"a.gz: gzip: invalid header"}},
		"open failed":        {"a.json", `{"smartctl":{"exit_status":2,"messages":[{"string":"open device: no such device","severity":"error"}]}}`, []string{"a.json: smartctl: open device: no such device"}},
		"raw blocks":         {"a.bin", "SMST\x00\x00\x00\x04\x00\x00\xc2\x4f", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, tt.name, tt.content)
			var got []string
			for _, v := range collect(t, filepath.Join(dir, tt.name)) {
				got = append(got, said(dir, v))
			}
			if tt.want == nil {
				if len(got) != 1 || strings.Contains(got[0], "neither") {
					t.Errorf("got %q", got)
				}
				return
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestOrderAndFolders(t *testing.T) {
	dir := t.TempDir()
	var lines, want []string
	for i := range 300 {
		lines = append(lines, doc(fmt.Sprint(i), i%2*2000))
	}
	write(t, dir, "b/many.jsonl", strings.Join(lines, "\n"))
	write(t, dir, "a.json", doc("A", 0))
	write(t, dir, "machine/sys/block/x", "")
	write(t, dir, "machine/extra.json", doc("never read", 0))
	write(t, dir, "z.json", doc("Z", 0))
	want = append(want, "a.json A GOOD")
	for i := range 300 {
		want = append(want, fmt.Sprintf("b/many.jsonl:%d %d %s", i+1, i, []string{"GOOD", "BAD"}[i%2]))
	}
	want = append(want, "machine:sda S GOOD", "machine:sdb  BAD", "z.json Z GOOD", "missing: stat: no such file or directory", "a.json A GOOD")
	var got []string
	opt := Options{Thresholds: health.Default(), Recording: func(d string) ([]Subject, error) {
		if filepath.Base(d) != "machine" {
			return nil, fmt.Errorf("asked for %s", d)
		}
		return []Subject{{Name: "sda", Serial: "S"}, {Name: "sdb", Input: health.Input{Kernel: &drivebay.Kernel{State: "offline"}}}}, nil
	}}
	err := Files([]string{dir, filepath.Join(dir, "missing"), filepath.Join(dir, "a.json")}, opt, func(v Verdict) error {
		got = append(got, said(dir, v))
		return nil
	})
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, got\n%s", err, strings.Join(got, "\n"))
	}
}

func TestEmitEndsIt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", strings.Repeat(doc("A", 0)+"\n", 5000))
	full := errors.New("pipe closed")
	n := 0
	err := Files([]string{dir}, Options{Thresholds: health.Default()}, func(Verdict) error {
		if n++; n == 3 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n != 3 {
		t.Errorf("%v after %d verdicts", err, n)
	}
}

func TestRecordingFails(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "sys/x", "")
	opt := Options{Recording: func(string) ([]Subject, error) { return nil, errors.New("no block devices") }}
	if err := Files([]string{dir}, opt, func(v Verdict) error {
		if v.Err == nil || v.File != dir {
			t.Errorf("%+v", v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestRules judges a document for every rule that a document can speak to; each
// carries what is expected of it.
func TestRules(t *testing.T) {
	path := filepath.Join("testdata", "rules.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	verdicts := collect(t, path)
	if len(verdicts) != len(lines) {
		t.Fatalf("%d verdicts of %d lines", len(verdicts), len(lines))
	}
	met := map[string]bool{}
	for i, v := range verdicts {
		var want struct {
			Expect struct {
				Health drivebay.Health
				Code   string
			}
		}
		if err := json.Unmarshal([]byte(lines[i]), &want); err != nil {
			t.Fatal(err)
		}
		said := want.Expect.Code == ""
		for _, r := range v.Reasons {
			met[r.Code] = true
			said = said || r.Code == want.Expect.Code && r.Severity == v.Health
		}
		if v.Err != nil || v.Health != want.Expect.Health || !said {
			t.Errorf("%s: %v %v %+v, want %+v", v.File, v.Err, v.Health, v.Reasons, want.Expect)
		}
	}
	for _, r := range health.Rules() {
		needsMore := strings.HasPrefix(r.Code, "Kernel") || slices.Contains([]string{"ATALinkErrors", "NVMeController", "FilesystemErrors", "EvidenceStale", "DriveOffline", "DriveReturns", "DriveShrank", "WearForecast"}, r.Code)
		if !met[r.Code] && !needsMore {
			t.Errorf("no document makes rule %s speak", r.Code)
		}
	}
}

func TestJSON(t *testing.T) {
	for want, v := range map[string]Verdict{
		`{"file":"f","serial":"S","model":"M","transport":"sas","health":"BAD","reasons":[{"code":"C","severity":"BAD","text":"t","advice":"a"}]}`: {
			File: "f", Serial: "S", Model: "M", Transport: drivebay.TransportSAS, Health: drivebay.HealthBad, Reasons: []Reason{{"C", drivebay.HealthBad, "t", "a"}}},
		`{"file":"f","serial":"","model":"","transport":"unknown","health":"GOOD","reasons":[]}`: {File: "f", Health: drivebay.HealthGood},
		`{"file":"f","error":"it is \"cut\" off"}`:                                               {File: "f", Model: "M", Err: errors.New(`it is "cut" off`)},
	} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	for _, v := range []Verdict{
		{Type: drivebay.TypeHDD, Own: drivebay.VerdictPassed, Health: drivebay.HealthGood},
		{Type: drivebay.TypeHDD, Own: drivebay.VerdictPassed, Health: drivebay.HealthGood},
		{Type: drivebay.TypeHDD, Own: drivebay.VerdictPassed, Health: drivebay.HealthSuspect},
		{Type: drivebay.TypeHDD, Own: drivebay.VerdictPassed, Health: drivebay.HealthUnknown},
		{Type: drivebay.TypeSSD, Own: drivebay.VerdictFailed, Health: drivebay.HealthBad},
		{Err: errors.New("x")},
	} {
		table.Add(v)
	}
	if flagged, total, _ := table.Flagged(drivebay.TypeHDD, drivebay.VerdictPassed); flagged != 1 || total != 4 {
		t.Errorf("%d of %d", flagged, total)
	}
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"25.00 %", "100.00 %", "unreadable"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// FuzzLines reads lines as they come: their number and content survive any
// buffer, and no verdict is lost or doubled.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n\n[1]\n" + doc("A", 3)))
	f.Add([]byte("\n\r\n{\"model_name\":\"x\"}"))
	f.Add([]byte(strings.Repeat("a", 5000) + "\n" + doc("B", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var items []item
		r := reader{put: func(it item) error { items = append(items, it); return nil }}
		if err := r.lines("f", bufio.NewReaderSize(bytes.NewReader(b), 16)); err != nil {
			t.Fatal(err)
		}
		var want []item
		for i, line := range bytes.Split(b, []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, item{file: fmt.Sprintf("f:%d", i+1), data: line})
			}
		}
		if len(items) != len(want) {
			t.Fatalf("%d items, want %d", len(items), len(want))
		}
		for i := range want {
			if items[i].file != want[i].file || !bytes.Equal(items[i].data, want[i].data) {
				t.Fatalf("item %d: %s %q, want %s %q", i, items[i].file, items[i].data, want[i].file, want[i].data)
			}
			if v := items[i].verdict(health.Default()); v.Err == nil && v.Model == "" && v.Serial == "" && len(v.Reasons) == 0 && v.Own == drivebay.VerdictUnknown && v.Health != drivebay.HealthGood {
				t.Fatalf("a verdict without a reason: %+v", v)
			}
		}
		if err := r.whole("f", b); err != nil {
			t.Fatal(err)
		}
	})
}
