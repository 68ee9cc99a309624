package content

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestSamples: data without a format, whose ends were zeroed, is found wherever it covers a
// sixty-fourth of the drive; a drive that is all ones is blank, and one that cannot be read
// at a sample is unknown.
func TestSamples(t *testing.T) {
	const size = 1000 * mib
	f := sparse(t, filepath.Join(t.TempDir(), "image"), size)
	if c := DetectDrive(f, size, 512); c.Kind != drivebay.ContentBlank {
		t.Fatalf("a blank one is %v: %+v", c.Kind, c)
	}
	data := bytes.Repeat([]byte("row of a table; "), 16*mib/16)
	for _, at := range []int64{2 * mib, 17 * mib, 333*mib + 4096, size/2 + 1, size - 34*mib} {
		if _, err := f.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
		if c := Detect(f, size, 512); c.Kind != drivebay.ContentBlank {
			t.Errorf("by its ends one with data at %d is %v", at, c.Kind)
		}
		c := DetectDrive(f, size, 512)
		if c.Kind != drivebay.ContentForeign || len(c.Signatures) != 1 || c.Signatures[0].Offset+SampleSize <= uint64(at) || c.Signatures[0].Offset >= uint64(at)+16*mib {
			t.Errorf("one with data at %d is %v: %+v", at, c.Kind, c.Signatures)
		}
		if _, err := f.WriteAt(make([]byte, len(data)), at); err != nil {
			t.Fatal(err)
		}
	}
	if c := DetectDrive(ones{}, size, 512); c.Kind != drivebay.ContentBlank {
		t.Errorf("one of all ones is %v: %+v", c.Kind, c)
	}
	if c := DetectDrive(broken{f}, size, 512); c.Kind != drivebay.ContentUnknown || c.Reason == "" {
		t.Errorf("one that cannot be read in its middle is %v: %q", c.Kind, c.Reason)
	}
}

// TestSamplesFit: samples lie between the ends, of drives of any size.
func TestSamplesFit(t *testing.T) {
	for _, size := range []uint64{0, 1, 512, mib, 2 * mib, 3*mib + 8192, 4 * mib, 100*mib + 512, 1 << 40, 30 << 40} {
		all := Samples(size)
		if !slices.IsSorted(all) || len(all) > 100 || size >= 128*mib && len(all) < 60 {
			t.Errorf("of %d bytes: %v", size, all)
		}
		for _, at := range all {
			if at < 2*mib || at%mib != 0 || at+SampleSize+driveEnd > size {
				t.Errorf("of %d bytes: %d", size, at)
			}
		}
	}
}

type ones struct{}

func (ones) ReadAt(b []byte, _ int64) (int, error) {
	for i := range b {
		b[i] = 0xff
	}
	return len(b), nil
}

type broken struct{ io.ReaderAt }

func (d broken) ReadAt(b []byte, at int64) (int, error) {
	if uint64(at) == Samples(1000 * mib)[30] {
		return 0, errors.New("medium error")
	}
	return d.ReaderAt.ReadAt(b, at)
}
