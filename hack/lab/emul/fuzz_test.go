package emul

import "testing"

// An initiator may send anything: no model panics, and every answer is one.
func FuzzCommands(f *testing.F) {
	seeds := [][]byte{rw16(0x88, 0, 1), rw16(0x8a, 0, 2), smartRead(smartReadLog, 6), readLog(4, 1), passed(ataCheckPower, 0, 0, 0, false),
		{0x12, 1, 0x83, 0, 255, 0}, {0x1a, 0, 0x3f, 0, 255, 0}, {0x15, 0x10, 0, 0, 16, 0}, {0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0}, {0x1b, 0, 0, 0, 1, 0},
		receive(2), {0x1d, 0x10, 0, 0, 24, 0}, {0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0}, {0xa1, 8, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0}, {0x08, 0, 0, 0, 0, 0}, {}}
	for _, s := range seeds {
		f.Add(s, make([]byte, 24), false)
	}
	f.Fuzz(func(t *testing.T, cdb, out []byte, fixed bool) {
		desc := testDisk()
		desc.FixedSense, desc.RPM = fixed, len(out)%2
		disk, shelf := newDisk(t, desc), testShelf(t)
		disk.apply(Change{ReadErrors: &[]uint64{0, 7}, WriteErrors: &[]uint64{1}})
		for _, d := range []Device{disk, shelf} {
			r := d.Do(cdb, out)
			if (r.Status == StatusCheckCondition) != (len(r.Sense) >= 8) || r.Status != StatusGood && r.Status != StatusCheckCondition || len(r.Data) > MaxTransfer {
				t.Errorf("% x: status %02x, sense % x, %d bytes", cdb, r.Status, r.Sense, len(r.Data))
			}
		}
		_ = Key(cdb)
	})
}
