//go:build root

package host

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/loopdisk"
	"golang.org/x/sys/unix"
)

// TestRootCounters: the counters of a device are read by one open file, they follow the device, and
// those of a partition that went are not read for the next one with its name.
func TestRootCounters(t *testing.T) {
	w := worker(t)
	r := w.(*real)
	_, dev := loopdisk.New(t, 64*mib, "--partscan")
	d := openDisk(t, w, dev, false)
	add := func(start uint64) { must(t, d.AddPartition(1, start, 4*mib)) }
	add(mib)
	name := counterDir + filepath.Base(dev) + "p1/size"
	before, err := w.ReadFile(name)
	must(t, err)
	file := r.counters.files[name]
	if file == nil {
		t.Fatalf("%s is not kept open", name)
	}
	reads := func() string {
		b, err := w.ReadFile(counterDir + filepath.Base(dev) + "/stat")
		must(t, err)
		return strings.Fields(string(b))[0]
	}
	was := reads()
	fd, err := unix.Open(dev, unix.O_RDONLY|unix.O_DIRECT, 0)
	must(t, err)
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(t, err)
	defer func() { _ = unix.Munmap(buf) }()
	_, err = unix.Pread(fd, buf, 32*mib)
	must(t, err)
	if is := reads(); is == was {
		t.Errorf("a read of the device, and the counter is %s as before", is)
	}
	must(t, d.RemovePartition(1))
	if b, err := w.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the partition is gone: %q, %v", b, err)
	}
	must(t, d.AddPartition(1, 8*mib, 8*mib))
	after, err := w.ReadFile(name)
	must(t, err)
	if string(after) == string(before) || r.counters.files[name] == file {
		t.Errorf("another partition has the name: %q, and was %q", after, before)
	}
	must(t, d.RemovePartition(1))
}
