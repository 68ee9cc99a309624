package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Partitions are told to the kernel one by one (include/uapi/linux/blkpg.h): a
// reading of the whole table anew (BLKRRPART) is refused while any one is in use.
//
// EBUSY of an addition is also "there is one of that number" and "it overlaps
// another" (block/partitions/core.c); what is known is therefore asked first.
// EBUSY of a removal is anybody who has the partition open: it may pass.

func (d *realDisk) AddPartition(number int, start, size uint64) error {
	if have, ok := d.known(number); ok && have == (extent{start, size}) {
		return nil
	}
	return d.partition("add", unix.BLKPG_ADD_PARTITION, number, start, size)
}

func (d *realDisk) ResizePartition(number int, start, size uint64) error {
	if have, ok := d.known(number); ok && have == (extent{start, size}) {
		return nil
	}
	return d.partition("resize", unix.BLKPG_RESIZE_PARTITION, number, start, size)
}

func (d *realDisk) RemovePartition(number int) error {
	err := patiently(context.Background(), func() error { return d.partition("remove", unix.BLKPG_DEL_PARTITION, number, 0, 0) })
	if errors.Is(err, unix.ENXIO) { // it is not known; ENXIO of a drive that is gone says the same
		return nil
	}
	return err
}

func (d *realDisk) partition(verb string, op int32, number int, start, size uint64) error {
	p := unix.BlkpgPartition{Start: int64(start), Length: int64(size), Pno: int32(number)}
	arg := unix.BlkpgIoctlArg{Op: op, Datalen: int32(unsafe.Sizeof(p)), Data: (*byte)(unsafe.Pointer(&p))}
	return d.ioctl(fmt.Sprintf("%s partition %d", verb, number), unix.BLKPG, unsafe.Pointer(&arg))
}

type extent struct{ start, size uint64 }

// known is what the kernel holds a partition to be. sysfs counts in 512 bytes
// whatever the block size is (Documentation/ABI/stable/sysfs-block).
func (d *realDisk) known(number int) (extent, bool) {
	dir := "sys/dev/block/" + d.devNum
	names, err := d.files.ReadDir(dir)
	if err != nil {
		return extent{}, false
	}
	for _, name := range names {
		if n, err := d.number(dir + "/" + name + "/partition"); err != nil || n != uint64(number) {
			continue
		}
		start, err1 := d.number(dir + "/" + name + "/start")
		size, err2 := d.number(dir + "/" + name + "/size")
		return extent{start * 512, size * 512}, err1 == nil && err2 == nil
	}
	return extent{}, false
}

func (d *realDisk) number(name string) (uint64, error) {
	b, err := d.files.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}
