package content

import (
	"io"
	"slices"

	"github.com/drivebay/drivebay"
)

// A format that keeps nothing at either end, and data without a format, are visible only in the middle
// of a drive. That cannot be read completely: it is sampled before a drive is called blank.

// A drive is sampled at equal distances, and more densely towards its beginning, where filesystems
// write first.
const (
	SampleSize  = 4096 // bytes at each place
	sampleEven  = 64
	sampleFirst = 2 << 20
)

// DetectDrive is Detect, which also samples the space between the ends of a drive that is otherwise
// blank.
func DetectDrive(r io.ReaderAt, size uint64, blockSize int) drivebay.Content {
	c := Detect(r, size, blockSize)
	if c.Kind != drivebay.ContentBlank {
		return c
	}
	for _, at := range Samples(size) {
		v := look(r, at, SampleSize, SampleSize, 0)
		uniform := v.uniform()
		v.done()
		switch {
		case v.err != nil:
			return drivebay.Content{Reason: v.err.Error()}
		case !uniform:
			return drivebay.Content{Kind: drivebay.ContentForeign, Signatures: []drivebay.Signature{{Format: "data between its ends", Offset: at}}}
		}
	}
	return c
}

// Samples returns the offsets at which a drive of size bytes is sampled, all multiples of 1 MiB.
func Samples(size uint64) []uint64 {
	const align = 1 << 20
	var out []uint64
	for at := uint64(sampleFirst); at < size/sampleEven; at *= 2 {
		out = append(out, at)
	}
	for i := range uint64(sampleEven) {
		out = append(out, size/sampleEven*i/align*align)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(at uint64) bool { return at < sampleFirst || at+SampleSize+driveEnd > size })
}
