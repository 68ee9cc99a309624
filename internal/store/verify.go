package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Bolt trusts its file: a wrong page number can send it into a loop until the memory is
// used up, and no recover helps against that. So the tree of pages is walked here first,
// and every number is checked before it is followed. The layout is that of bbolt file
// version 2 (bbolt, internal/common: page.go, bucket.go).
const (
	pageHeader   = 16 // id uint64, flags uint16, count uint16, overflow uint32
	branchFlag   = 0x01
	leafFlag     = 0x02
	branchElem   = 16 // pos uint32, ksize uint32, page uint64
	leafElem     = 16 // flags uint32, pos uint32, ksize uint32, vsize uint32
	bucketElem   = 0x01
	bucketHeader = 16 // root page uint64, sequence uint64; root 0: a page follows in place
)

// walk checks the whole file once, under the lock. It runs before the file is opened for
// writing: only then does bolt trust the list of free pages.
func walk(tx *bolt.Tx, file *os.File) error {
	size := int64(tx.DB().Info().PageSize)
	t := tree{file: file, pageSize: size, pages: uint64(tx.Size() / size), seen: map[uint64]bool{}}
	if err := t.page(uint64(tx.Cursor().Bucket().Root())); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err := t.freeList(uint64(tx.ID())); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// check runs bolt's own check, which covers the order of keys and the free pages.
func check(tx *bolt.Tx) error {
	var first error
	for err := range tx.Check() {
		if first == nil {
			first = fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	return first
}

// The meta pages are 0 and 1: after the header magic, version and page size, each
// uint32, flags uint32, the root bucket, then the page of the free list, the
// number of pages, the transaction, a checksum, each uint64 (meta.go).
const (
	metaFreeList = pageHeader + 32
	metaTx       = pageHeader + 48
	metaSize     = pageHeader + 64
	freeListFlag = 0x10
	noFreeList   = ^uint64(0)
)

// oneMeta reports whether exactly one of the two meta pages is damaged. Bolt does not
// report that: it uses the other one, and so may open the file as it was one transaction
// before. The checksum is FNV-1a of the bytes before it (meta.go, Sum64).
func oneMeta(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	pageSize, bad := int64(os.Getpagesize()), 0
	for id := range int64(2) {
		meta := make([]byte, metaSize)
		if _, err := file.ReadAt(meta, id*pageSize); err != nil {
			return false
		}
		sum := fnv.New64a()
		sum.Write(meta[pageHeader : metaSize-8])
		if sum.Sum64() != binary.LittleEndian.Uint64(meta[metaSize-8:]) {
			bad++
		}
	}
	return bad == 1
}

// freeList checks the list of free pages that transaction txid left. It holds page
// numbers, with their count in the header or, if that is FFFFh, in front of them
// (freelist.go).
func (t *tree) freeList(txid uint64) error {
	for id := range int64(2) {
		meta := make([]byte, metaSize)
		if _, err := t.file.ReadAt(meta, id*t.pageSize); err != nil {
			return fmt.Errorf("meta page %d: %w", id, err)
		}
		if at := binary.LittleEndian.Uint64(meta[metaFreeList:]); binary.LittleEndian.Uint64(meta[metaTx:]) == txid && at != noFreeList {
			if err := t.freePages(at); err != nil {
				return fmt.Errorf("list of free pages: %w", err)
			}
		}
	}
	return nil
}

func (t *tree) freePages(id uint64) error {
	if id < 2 || id >= t.pages {
		return fmt.Errorf("page %d of %d", id, t.pages)
	}
	head := make([]byte, pageHeader+8)
	if _, err := t.file.ReadAt(head, int64(id)*t.pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	overflow, first := uint64(binary.LittleEndian.Uint32(head[12:])), uint64(pageHeader)
	if binary.LittleEndian.Uint64(head) != id || binary.LittleEndian.Uint16(head[8:]) != freeListFlag || id+overflow >= t.pages {
		return fmt.Errorf("page %d: impossible header % x", id, head[:pageHeader])
	}
	count := uint64(binary.LittleEndian.Uint16(head[10:]))
	if count == 0xffff {
		count, first = binary.LittleEndian.Uint64(head[pageHeader:]), pageHeader+8
	}
	if count > t.pages || first+8*count > (1+overflow)*uint64(t.pageSize) {
		return fmt.Errorf("page %d: %d pages do not fit", id, count)
	}
	list := make([]byte, 8*count)
	if _, err := t.file.ReadAt(list, int64(id)*t.pageSize+int64(first)); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	for ; len(list) > 0; list = list[8:] {
		free := binary.LittleEndian.Uint64(list)
		if free < 2 || free >= t.pages || t.seen[free] {
			return fmt.Errorf("page %d of %d is not free", free, t.pages)
		}
	}
	return nil
}

type tree struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64
	seen     map[uint64]bool
}

// page checks one page and all pages below it. It enters no page twice, so that the walk
// ends.
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

// content checks the elements of a page of the file or of a page in place.
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

// branch checks an element and the page that it refers to. Positions are relative to the
// element: from is the rest of the page, beginning with the element.
func (t *tree) branch(from []byte) error {
	if _, err := part(from, uint64(binary.LittleEndian.Uint32(from)), uint64(binary.LittleEndian.Uint32(from[4:]))); err != nil {
		return err
	}
	return t.page(binary.LittleEndian.Uint64(from[8:branchElem]))
}

// leaf checks an element, and its bucket if it is one.
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

// inPlace checks a small bucket inside its parent's page. It has to be a leaf without a
// page number and overflow, because bolt would free the pages that they name.
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
