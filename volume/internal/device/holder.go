package device

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// HolderOf returns the device above another device with a name for which is returns true, as sysfs shows it; ErrNotFound: it is not there.
func (e *Opener) HolderOf(d mounttable.Device, is func(name string) bool) (mounttable.Device, error) {
	names, err := e.Machine.ReadDir("sys/dev/block/" + d.Num + "/holders")
	i := slices.IndexFunc(names, is)
	if err != nil || i < 0 {
		return mounttable.Device{}, fmt.Errorf("device above %s: %w", d.Name, drivebay.ErrNotFound)
	}
	return e.Named(names[i])
}

// Named returns the device with a name of the kernel, as sysfs shows it; ErrNotFound: it is not there.
func (e *Opener) Named(name string) (mounttable.Device, error) {
	at := "sys/class/block/" + name
	num, err := e.Machine.ReadFile(at + "/dev")
	size, err2 := partitions.ReadNumber(e.Machine, at+"/size")
	if err := errors.Join(err, err2); err != nil {
		return mounttable.Device{}, fmt.Errorf("device %s: %w: %w", name, drivebay.ErrNotFound, err)
	}
	return mounttable.Device{Dev: "/dev/" + name, Num: strings.TrimSpace(string(num)), Name: name, Size: size * 512}, nil
}

// StaysOpen reports whether a layer above a volume's piece stays open when the volume is not in use: then the piece
// does, too.
func (e *Opener) StaysOpen(v *drivebay.Volume) bool {
	return slices.ContainsFunc(e.Stack(v).Above(), func(l Layer) bool {
		s, is := l.(interface{ Stays() bool })
		return is && s.Stays()
	})
}
