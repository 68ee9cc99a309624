package store

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Bolt trusts its file: a wild page number sends it round in circles until the
// memory is used up, and no recover helps against that. So the tree of pages is
// walked here first, with every number checked before it is followed. The layout
// is that of bbolt file version 2 (bbolt, internal/common: page.go, bucket.go).
const (
	pageHeader   = 16 // id uint64, flags uint16, count uint16, overflow uint32
	branchFlag   = 0x01
	leafFlag     = 0x02
	branchElem   = 16 // pos uint32, ksize uint32, page uint64
	leafElem     = 16 // flags uint32, pos uint32, ksize uint32, vsize uint32
	bucketElem   = 0x01
	bucketHeader = 16 // root page uint64, sequence uint64; root 0: a page follows in place
)

// check walks the whole file once, under the lock. Bolt's own check, which knows
// about order and free pages, comes after the walk.
func check(tx *bolt.Tx, file *os.File) error {
	size := int64(tx.DB().Info().PageSize)
	t := tree{file: file, pageSize: size, pages: uint64(tx.Size() / size), seen: map[uint64]bool{}}
	if err := t.page(uint64(tx.Cursor().Bucket().Root())); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	// Two pages are meta pages and one at least lists the free ones; bolt's check
	// finds pages that are in no list, and this finds a list of pages that are not.
	if free := tx.DB().Stats().FreePageN; uint64(len(t.seen)+free)+3 > t.pages {
		return fmt.Errorf("%w: %d pages in use and %d free of %d", errDamaged, len(t.seen), free, t.pages)
	}
	var first error
	for err := range tx.Check() {
		if first == nil {
			first = fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	return first
}

type tree struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64
	seen     map[uint64]bool
}

// page checks one page and all below it. No page is entered twice, so that the
// walk ends.
func (t *tree) page(id uint64) error {
	head := make([]byte, pageHeader)
	if id < 2 || id >= t.pages {
		return fmt.Errorf("page %d of %d", id, t.pages)
	}
	if _, err := t.file.ReadAt(head, int64(id)*t.pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	overflow := uint64(binary.LittleEndian.Uint32(head[12:]))
	if binary.LittleEndian.Uint64(head) != id || id+overflow >= t.pages {
		return fmt.Errorf("page %d: impossible header % x", id, head)
	}
	for i := id; i <= id+overflow; i++ {
		if t.seen[i] {
			return fmt.Errorf("page %d is used twice", i)
		}
		t.seen[i] = true
	}
	page := make([]byte, int64(1+overflow)*t.pageSize)
	if _, err := t.file.ReadAt(page, int64(id)*t.pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if err := t.content(page); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// content checks the elements of a page, be it one of the file or one in place.
func (t *tree) content(page []byte) error {
	if len(page) < pageHeader {
		return fmt.Errorf("%d bytes are no page", len(page))
	}
	each := map[uint16]func([]byte) error{branchFlag: t.branch, leafFlag: t.leaf}[binary.LittleEndian.Uint16(page[8:])]
	if each == nil {
		return fmt.Errorf("impossible header % x", page[:pageHeader])
	}
	count := int(binary.LittleEndian.Uint16(page[10:]))
	if pageHeader+count*leafElem > len(page) {
		return fmt.Errorf("%d elements do not fit", count)
	}
	for i := range count {
		if err := each(page[pageHeader+i*leafElem:]); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// branch checks an element and the page that it leads to. An element's data is
// found relative to the element itself: from is the page from there on.
func (t *tree) branch(from []byte) error {
	if _, err := part(from, uint64(binary.LittleEndian.Uint32(from)), uint64(binary.LittleEndian.Uint32(from[4:]))); err != nil {
		return err
	}
	return t.page(binary.LittleEndian.Uint64(from[8:branchElem]))
}

// leaf checks an element and, where it is a bucket, the bucket.
func (t *tree) leaf(from []byte) error {
	pos, ksize, vsize := uint64(binary.LittleEndian.Uint32(from[4:])), uint64(binary.LittleEndian.Uint32(from[8:])), uint64(binary.LittleEndian.Uint32(from[12:]))
	value, err := part(from, pos+ksize, vsize)
	if err != nil || binary.LittleEndian.Uint32(from)&bucketElem == 0 {
		return err
	}
	if len(value) < bucketHeader {
		return fmt.Errorf("%d bytes are no bucket", len(value))
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return t.page(root)
	}
	return t.inPlace(value[bucketHeader:])
}

// inPlace checks a small bucket that lives in its parent's page: a leaf that has
// no number and no overflow, for bolt would free the pages that they name.
func (t *tree) inPlace(page []byte) error {
	if err := t.content(page); err != nil {
		return err
	}
	if [8]byte(page) != [8]byte{} || [4]byte(page[12:]) != [4]byte{} || binary.LittleEndian.Uint16(page[8:]) != leafFlag {
		return fmt.Errorf("impossible header % x in place", page[:pageHeader])
	}
	return nil
}

func part(b []byte, pos, size uint64) ([]byte, error) {
	if pos+size > uint64(len(b)) {
		return nil, fmt.Errorf("%d bytes at %d reach beyond the page", size, pos)
	}
	return b[pos : pos+size], nil
}
