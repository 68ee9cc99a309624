package smart

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	referee "github.com/anatol/smart.go"

	"github.com/drivebay/drivebay"
)

// The referee is another decoder of the same pages. Its known differences are left out: it ends at the
// first slot without an id, and it knows no checksum.

// pagesOf returns the recorded pages of a name: of the emulated machine in testdata and, where they are,
// the tagged blocks of real ATA drives.
func pagesOf(t *testing.T, page, tag string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range []string{"../../testdata/lab-recording/pages/*/" + page + ".bin", "testdata/lab/" + page + ".bin"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = b
		}
	}
	dir := os.Getenv("DRIVEBAY_CORPUS")
	if dir == "" {
		dir = "../../../shared/corpus"
	}
	names, err := filepath.Glob(filepath.Join(dir, "ata-raw", "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) >= 8 {
			n := int(binary.BigEndian.Uint32(b[4:]))
			if len(b) < 8+n {
				break
			}
			if string(b[:4]) == tag {
				out[name] = b[8 : 8+n]
			}
			b = b[8+n:]
		}
	}
	if len(out) == 0 {
		t.Fatalf("no recording of %s", page)
	}
	return out
}

// read decodes a page into a struct of the referee.
func read(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := binary.Read(io.MultiReader(bytes.NewReader(b), bytes.NewReader(make([]byte, 8192))), binary.LittleEndian, into); err != nil {
		t.Fatal(err)
	}
}

// trimmed drops the padding of a field: blanks by the standard, zeros by some firmware.
func trimmed(s string) string { return strings.Trim(s, " \x00") }

func TestRefereeATAIdentify(t *testing.T) {
	for name, b := range pagesOf(t, "ata-identify", "IDFY") {
		ev := &drivebay.Evidence{}
		if err := ATAIdentify(ev, b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var its referee.AtaIdentifyDevice
		read(t, b, &its)
		id := ev.Identity
		if id.Model != trimmed(its.ModelNumber()) || id.Serial != trimmed(its.SerialNumber()) || id.Firmware != trimmed(its.FirmwareRevision()) {
			t.Errorf("%s: %+v, by the referee %q, %q, %q", name, id, its.ModelNumber(), its.SerialNumber(), its.FirmwareRevision())
		}
		if _, size, _, _, _ := its.Capacity(); id.Size != 0 && size != 0 && id.Size != size {
			t.Errorf("%s: %d bytes, by the referee %d", name, id.Size, size)
		}
	}
}

func TestRefereeATAAttributes(t *testing.T) {
	compared := 0
	for name, b := range pagesOf(t, "ata-smart-data", "SMDT") {
		ev := &drivebay.Evidence{}
		if ATASmartData(ev, b) != nil { // a wrong checksum
			continue
		}
		var its referee.AtaSmartPageRaw
		read(t, b, &its)
		for _, theirs := range its.Attrs {
			if theirs.Id == 0 {
				continue
			}
			raw := binary.LittleEndian.Uint64(append(slices.Clone(theirs.VendorBytes[:]), 0, 0))
			if !slices.ContainsFunc(ev.ATA.Attributes, func(a drivebay.Attribute) bool {
				return a.ID == theirs.Id && a.Value == theirs.Current && a.Worst == theirs.Worst && a.Raw == raw && a.Prefail == (theirs.Flags&1 != 0)
			}) {
				t.Errorf("%s: attribute %d: the referee has value %d, worst %d, raw %d: %+v", name, theirs.Id, theirs.Current, theirs.Worst, raw, ev.ATA.Attributes)
			}
			compared++
		}
	}
	if compared < 5 {
		t.Errorf("%d attributes compared", compared)
	}
}

func TestRefereeATAThresholds(t *testing.T) {
	data := pagesOf(t, "ata-smart-data", "SMDT")
	compared := 0
	for name, b := range pagesOf(t, "ata-smart-thresholds", "SMTH") {
		ev := &drivebay.Evidence{}
		of := data[name]
		if of == nil {
			of = data[filepath.Join(filepath.Dir(name), "ata-smart-data.bin")]
		}
		if ATASmartData(ev, of) != nil || ATASmartThresholds(ev, b) != nil {
			continue
		}
		var its referee.AtaSmartThresholdsPageRaw
		read(t, b, &its)
		for _, theirs := range its.ThresholdEntries {
			for _, a := range ev.ATA.Attributes {
				if a.ID != theirs.Id || a.ID == 0 {
					continue
				}
				if compared++; a.Threshold == nil || *a.Threshold != theirs.Threshold {
					t.Errorf("%s: attribute %d: threshold %v, by the referee %d", name, a.ID, a.Threshold, theirs.Threshold)
				}
			}
		}
	}
	if compared < 5 {
		t.Errorf("%d thresholds compared", compared)
	}
}

func TestRefereeNVMe(t *testing.T) {
	small := func(name string, ours uint64, theirs referee.Uint128) {
		t.Helper()
		if theirs.Val[1] != 0 || ours != theirs.Val[0] {
			t.Errorf("%s: %d, by the referee %v", name, ours, theirs)
		}
	}
	for name, b := range pagesOf(t, "nvme-smart-log", "") {
		ev := &drivebay.Evidence{}
		if err := NVMeSmartLog(ev, b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var its referee.NvmeSMARTLog
		read(t, b, &its)
		n := ev.NVMe
		if n.CriticalWarning != its.CritWarning || n.TemperatureKelvin != its.Temperature || n.AvailableSpare != its.AvailSpare ||
			n.SpareThreshold != its.SpareThresh || n.PercentageUsed != its.PercentUsed {
			t.Errorf("%s: %+v, by the referee %+v", name, n, its)
		}
		small(name, n.DataUnitsRead, its.DataUnitsRead)
		small(name, n.DataUnitsWritten, its.DataUnitsWritten)
		small(name, n.HostReads, its.HostReads)
		small(name, n.HostWrites, its.HostWrites)
		small(name, n.BusyMinutes, its.CtrlBusyTime)
		small(name, n.PowerCycles, its.PowerCycles)
		small(name, n.PowerOnHours, its.PowerOnHours)
		small(name, n.UnsafeShutdowns, its.UnsafeShutdowns)
		small(name, n.MediaErrors, its.MediaErrors)
	}
	for name, b := range pagesOf(t, "nvme-identify-controller", "") {
		ev := &drivebay.Evidence{}
		if err := NVMeIdentifyController(ev, b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var its referee.NvmeIdentController
		read(t, b, &its)
		if id := ev.Identity; id.Model != trimmed(its.ModelNumber()) || id.Serial != trimmed(its.SerialNumber()) || id.Firmware != trimmed(its.FirmwareRev()) {
			t.Errorf("%s: %+v, by the referee %q, %q, %q", name, id, its.ModelNumber(), its.SerialNumber(), its.FirmwareRev())
		}
	}
}
