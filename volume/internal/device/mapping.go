package device

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// PlainName returns the device-mapper name of a decrypted volume; it is also the label of its header.
func PlainName(id string) string { return content.OursPrefix + id }

// MappingOn returns the decrypted device of a volume above the device that has its header. The volume has
// it only while it is unlocked.
func (e *Opener) MappingOn(d mounttable.Device, v *drivebay.Volume) (mounttable.Device, error) {
	at := "sys/dev/block/" + d.Num + "/holders"
	names, err := e.Machine.ReadDir(at)
	if err != nil {
		return mounttable.Device{}, fmt.Errorf("volume %s: what holds %s: %w: %w", v.ID, d.Name, drivebay.ErrNotFound, err)
	}
	for _, name := range names {
		if m, is, err := e.mappingAt(at+"/"+name, v); is || err != nil {
			return m, err
		}
	}
	return mounttable.Device{}, fmt.Errorf("volume %s: %w: it is locked", v.ID, drivebay.ErrNotFound)
}

// Mapping finds the decrypted device regardless of the device below it: the drive that it was made on
// may have left and come back as another device. That of another volume of the id, which is newer than the record, is not the volume's.
func (e *Opener) Mapping(v *drivebay.Volume) (mounttable.Device, bool, error) {
	names, err := e.Machine.ReadDir("sys/block")
	if err != nil {
		return mounttable.Device{}, false, fmt.Errorf("volume %s: mapped devices: %w", v.ID, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "dm-") {
			if m, is, err := e.mappingAt("sys/block/"+name, v); is || err != nil && !errors.Is(err, errOtherMapping) {
				return m, is, err
			}
		}
	}
	return mounttable.Device{}, false, nil
}

var errOtherMapping = errors.New("its device-mapper UUID is not that of the volume")

// mappingAt reports whether a device in sysfs is the decrypted device of a volume. The kernel has one
// device of that name; the device-mapper UUID says what it contains (cryptsetup, lib/libdevmapper.c,
// dm_prepare_uuid).
func (e *Opener) mappingAt(dir string, v *drivebay.Volume) (mounttable.Device, bool, error) {
	if title, err := e.MountTable.MapperName(dir); err != nil || title != PlainName(v.ID) {
		return mounttable.Device{}, false, nil // not a device-mapper device, or gone since
	}
	uuid, _ := e.Machine.ReadFile(dir + "/dm/uuid")
	num, err := e.Machine.ReadFile(dir + "/dev")
	size, err2 := partitions.ReadNumber(e.Machine, dir+"/size")
	if err := errors.Join(err, err2); err != nil {
		return mounttable.Device{}, false, fmt.Errorf("volume %s: device %s: %w", v.ID, path.Base(dir), err)
	}
	if header := strings.ReplaceAll(v.LUKSUUID, "-", ""); !strings.HasPrefix(string(uuid), "CRYPT-LUKS2-"+header) { // without a record it has none
		return mounttable.Device{}, false, fmt.Errorf("volume %s: %w: device %s has its name, and %w: %q", v.ID, drivebay.ErrRefused, path.Base(dir), errOtherMapping, strings.TrimSpace(string(uuid)))
	}
	name := path.Base(dir)
	return mounttable.Device{Dev: "/dev/" + name, Num: strings.TrimSpace(string(num)), Name: name, Size: size * 512}, true, nil
}

// Locked reports whether an encrypted volume has no device, and its piece has one.
func (e *Opener) Locked(v *drivebay.Volume) bool {
	if !v.Encrypted() {
		return false
	}
	_, below := e.Device(v)
	_, err := e.Stack(v).State()
	return below == nil && errors.Is(err, drivebay.ErrNotFound)
}

// notTheKey matches what cryptsetup prints as well where the key was right and the kernel has then refused something else with EPERM: the
// status is 2, and "No key available" is printed, all the same. A filter of system calls refuses add_key.
var notTheKey = regexp.MustCompile(`Failed to load key in kernel keyring|device-mapper: `)

// CryptError translates the exit statuses of cryptsetup(8). A header without any key is treated like
// a wrong key.
func CryptError(err error) error {
	exit, ok := errors.AsType[*host.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.Code == 2 && !notTheKey.MatchString(exit.Stderr), strings.Contains(exit.Stderr, "No usable keyslot"):
		return fmt.Errorf("%w: the key does not unlock the volume: %w", drivebay.ErrSecret, err)
	case exit.Code == 5:
		return fmt.Errorf("%w: %w", drivebay.ErrBusy, err)
	}
	return err
}

// Lock removes the decrypted device. Without a device the volume is locked already.
func (e *Opener) Lock(ctx context.Context, v *drivebay.Volume) error {
	_, is, err := e.Mapping(v)
	if err != nil || !is {
		return err
	}
	err = steps.Touch(ctx, e.Steps, v, steps.UnmountTime, func(ctx context.Context) error {
		_, err := e.Machine.Run(ctx, "cryptsetup", "close", PlainName(v.ID))
		return CryptError(err)
	})
	if err != nil {
		return fmt.Errorf("volume %s: lock: %w", v.ID, err)
	}
	return nil
}

// LockUnrecorded locks a volume of which no more than its id is known, unless its device is mounted. It only logs its own error: an unstage
// always ends.
func (e *Opener) LockUnrecorded(ctx context.Context, v *drivebay.Volume, mounted func(mounttable.Device) bool) {
	d, is, err := e.Mapping(v)
	if is && !mounted(d) {
		err = e.Lock(ctx, v)
	}
	if err != nil {
		e.Log.Warn("a volume without a record stays unlocked", "op", "unstage", "volume", v.ID, "err", err)
	}
}
