package smart

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/drivebay/drivebay"
)

// fuzz gives the bytes to every decoder of a family: as they are, and with a
// checksum that is right, so that what stands behind it is reached.
func fuzz(t *testing.T, family map[string]decoder, b []byte) {
	inputs := [][]byte{b}
	if len(b) >= sector {
		inputs = append(inputs, seal(slices.Clone(b)))
	}
	for _, in := range inputs {
		for _, name := range slices.Sorted(maps.Keys(family)) {
			ev, before := filled(), filled()
			if err := family[name](ev, in); err != nil && !reflect.DeepEqual(ev, before) {
				t.Errorf("%s: an error changed the evidence", name)
			}
			checkStrings(t, reflect.ValueOf(ev))
		}
	}
}

func FuzzATA(f *testing.F) {
	f.Add(identifyPage(nil))
	f.Add(dataPage(attr{5, 3, 100, 100, 1 << 47}, attr{}, attr{194, 2, 30, 20, 0x001400220022}))
	f.Add(thresholdPage(map[uint8]uint8{5: 36}))
	f.Add(statisticsPage())
	f.Add([]byte{0x4F, 0xC2})
	f.Fuzz(func(t *testing.T, b []byte) { fuzz(t, ataDecoders, b) })
}

func FuzzNVMe(f *testing.F) {
	f.Add(controllerPage())
	f.Add(namespacePage())
	f.Add(smartLog(nil))
	f.Add(page(564, map[int][]byte{0: {1, 40, 0, 0, 0x17}}))
	f.Fuzz(func(t *testing.T, b []byte) { fuzz(t, nvmeDecoders, b) })
}

func FuzzSCSI(f *testing.F) {
	f.Add(inquiryPage())
	f.Add(logOf(0x03, 0, param(6, 1, 2, 3)))
	f.Add(logOf(0x15, 1, param(0, 0, 0, 0, 9)))
	f.Add(vpdOf(0x83, 1, 3, 0, 8, 0x50, 0, 0xC5, 0, 0xA, 0, 0, 1))
	f.Add([]byte{0, 8, 0, 0, 0, 0, 0, 16})
	f.Fuzz(func(t *testing.T, b []byte) { fuzz(t, scsiDecoders, b) })
}

func FuzzBlocks(f *testing.F) {
	f.Add(blockOf("IDFY", identifyPage(nil)))
	f.Add(append(blockOf("SMST", []byte{0, 0, 0, 1}), blockOf("SMDT", dataPage(attr{5, 3, 100, 100, 7}))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		ev, err := ReadBlocks(b)
		if (err == nil) != IsBlocks(b) || (err == nil) != (ev != nil) {
			t.Fatalf("IsBlocks %v, error %v, evidence %v", IsBlocks(b), err, ev)
		}
		if ev != nil {
			checkStrings(t, reflect.ValueOf(ev))
			if ev.Verdict == drivebay.VerdictPassed && ev.ATA == nil && len(ev.Problems) == 0 {
				t.Error("passed, without a page and without a problem")
			}
		}
	})
}
