package tcmu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// uio is the open device of a backstore: reading it waits for commands, writing
// it says that there are answers (Documentation/driver-api/uio-howto.rst).
type uio struct {
	file *os.File
	mem  []byte
}

// openUIO finds the device by its name, tcm-user/HBA/NAME/CONFIG, and maps it. Its
// node in /dev comes a moment after the device.
func openUIO(ctx context.Context, name string) (*uio, error) {
	var dev string
	err := until(ctx, func() (bool, error) {
		var err error
		dev, err = findUIO(name)
		if err != nil || dev == "" {
			return false, err
		}
		_, err = os.Stat("/dev/" + dev)
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the uio device: %w", err)
	}
	f, err := os.OpenFile("/dev/"+dev, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	u := &uio{file: f}
	if err := u.mapRing(dev); err != nil {
		f.Close()
		return nil, fmt.Errorf("map %s: %w", dev, err)
	}
	return u, nil
}

func findUIO(name string) (string, error) {
	files, err := filepath.Glob("/sys/class/uio/uio*/name")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.HasSuffix(strings.TrimSpace(string(b)), "/"+name+"/"+subtype+"/"+name) {
			return filepath.Base(filepath.Dir(f)), nil
		}
	}
	return "", nil
}

func (u *uio) mapRing(dev string) error {
	b, err := os.ReadFile("/sys/class/uio/" + dev + "/maps/map0/size")
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(b)), 0, 64)
	if err != nil {
		return err
	}
	raw, err := u.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		u.mem, failed = unix.Mmap(int(fd), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	})
	if err == nil {
		err = failed
	}
	return err
}

// wait sends to kicks whenever the kernel has put something into the ring, until
// the device is closed.
func (u *uio) wait(kicks chan<- struct{}) {
	defer close(kicks)
	var count [4]byte
	for {
		if _, err := u.file.Read(count[:]); err != nil {
			return
		}
		select {
		case kicks <- struct{}{}:
		default: // the last one was not noticed yet: it is for both
		}
	}
}

// kick tells the kernel that there are answers.
func (u *uio) kick() error {
	_, err := u.file.Write([]byte{1, 0, 0, 0})
	return err
}

// until asks again and again, as nobody tells when sysfs has got a new entry.
func until(ctx context.Context, there func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := there(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
