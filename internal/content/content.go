// Package content detects whether a drive holds anything, and what.
//
// It reads the areas in which every known format leaves its signature: a good MiB at each end of the
// drive, less of each partition. It reports unknown where it cannot read, and blank only for a drive
// that reads as blank.
package content

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// OursPrefix starts the name of every partition that drivebay makes.
const OursPrefix = drivebay.PartitionPrefix

// The bytes read at each end. Of a whole drive a MiB and a little, all of which must be uniform for it
// to be blank; of a partition what holds the signatures of every format but the distant ones, which
// are read one by one.
const (
	driveEnd      = 1<<20 + 4096
	partitionHead = 256 << 10
	partitionTail = 8 << 10
)

// Detect returns the content of a drive of size bytes. blockSize is its logical block size, 0 if
// unknown.
func Detect(r io.ReaderAt, size uint64, blockSize int) drivebay.Content {
	switch {
	case size == 0:
		return drivebay.Content{Reason: "the kernel reports a size of 0 bytes"}
	case size > math.MaxInt64:
		return drivebay.Content{Reason: fmt.Sprintf("invalid size: %d bytes", size)}
	}
	whole := look(r, 0, size, driveEnd, driveEnd)
	defer whole.done()
	t := readTable(whole, uint64(max(blockSize, 0)))
	onDrive := slices.DeleteFunc(signaturesOf(whole, ""), t.inPartition)
	err := whole.err
	found := slices.Concat(t.signatures, onDrive)
	for _, p := range t.partitions {
		if !p.inside(size) {
			continue
		}
		part := look(r, p.start, p.size, partitionHead, partitionTail)
		for _, s := range signaturesOf(part, strconv.Itoa(p.number)) {
			s.Name = p.name
			found = append(found, s)
		}
		if err == nil {
			err = part.err
		}
		part.done()
	}
	if len(found) == 0 && whole.uniform() {
		first, unread := inFirst(r, size, uint64(max(blockSize, 0)))
		found = append(backups(whole), first...)
		err = cmp.Or(whole.err, unread)
	}
	c := drivebay.Content{Signatures: found, Beyond: t.beyond, TableSum: t.sum, TableDamage: t.damage}
	if err != nil {
		c.Reason = err.Error()
	}
	c.Kind = kindOf(whole, t, onDrive, found, err)
	if c.Kind == drivebay.ContentForeign && len(found) == 0 {
		c.Signatures = []drivebay.Signature{{Format: "unrecognised data"}}
	}
	return c
}

// kindOf classifies a drive. One signature makes it foreign; any other kind needs a complete read
// without errors. Exception: content of partitions that are all ours, readable or not, does not make
// the drive foreign.
func kindOf(whole *view, t table, onDrive, found []drivebay.Signature, err error) drivebay.ContentKind {
	switch {
	case whole.err == nil && t.ours && len(onDrive) == 0:
		return drivebay.ContentOurs
	case len(found) > 0:
		return drivebay.ContentForeign
	case err != nil:
		return drivebay.ContentUnknown
	case whole.uniform():
		return drivebay.ContentBlank
	}
	return drivebay.ContentForeign
}

// clean makes a label from a foreign drive safe to display.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.TrimSpace(s)
}
