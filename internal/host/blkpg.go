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

// The kernel learns of partitions one by one (include/uapi/linux/blkpg.h): it refuses to read the
// whole table again (BLKRRPART) while any partition is in use.
//
// EBUSY of an addition also means that the number exists or that the partition overlaps another
// (block/partitions/core.c), so the known partitions are checked first. EBUSY of a removal means that
// a process has the partition open, which may pass.

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
	err := retryBusy(context.Background(), func() error { return d.partition("remove", unix.BLKPG_DEL_PARTITION, number, 0, 0) })
	if errors.Is(err, unix.ENXIO) { // the kernel does not know it; a drive that is gone gives ENXIO, too
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

// known returns the extent that the kernel has for a partition. sysfs counts in 512 bytes whatever the
// block size is (Documentation/ABI/stable/sysfs-block).
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
