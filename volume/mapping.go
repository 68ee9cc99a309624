package volume

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
)

// plainName returns the device-mapper name of a decrypted volume; it is also the label of its header.
func plainName(id string) string { return content.OursPrefix + id }

// plain returns the device that users of a volume get. An encrypted volume has it only while it is
// unlocked. plain touches no drive.
func (e *Engine) plain(v *drivebay.Volume) (device, error) {
	d, err := e.device(v)
	if err != nil || v.LUKSUUID == "" {
		return d, err
	}
	at := "sys/dev/block/" + d.num + "/holders"
	names, err := e.machine.ReadDir(at)
	if err != nil {
		return device{}, fmt.Errorf("volume %s: what holds %s: %w: %w", v.ID, d.name, drivebay.ErrNotFound, err)
	}
	for _, name := range names {
		if m, is, err := e.mappingAt(at+"/"+name, v); is || err != nil {
			return m, err
		}
	}
	return device{}, fmt.Errorf("volume %s: %w: it is locked", v.ID, drivebay.ErrNotFound)
}

func (e *Engine) isPlain(v *drivebay.Volume) (bool, error) {
	_, err := e.plain(v)
	if errors.Is(err, drivebay.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// mapping finds the decrypted device regardless of the device below it: the drive that it was made on
// may have left and come back as another device.
func (e *Engine) mapping(v *drivebay.Volume) (device, bool, error) {
	names, err := e.machine.ReadDir("sys/block")
	if err != nil {
		return device{}, false, fmt.Errorf("volume %s: mapped devices: %w", v.ID, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "dm-") {
			if m, is, err := e.mappingAt("sys/block/"+name, v); is || err != nil {
				return m, is, err
			}
		}
	}
	return device{}, false, nil
}

// mappingAt reports whether a device in sysfs is the decrypted device of a volume. The kernel has one
// device of that name; the device-mapper UUID says what it contains (cryptsetup, lib/libdevmapper.c,
// dm_prepare_uuid).
func (e *Engine) mappingAt(dir string, v *drivebay.Volume) (device, bool, error) {
	if title, err := e.mapperName(dir); err != nil || title != plainName(v.ID) {
		return device{}, false, nil // not a device-mapper device, or gone since
	}
	uuid, _ := e.machine.ReadFile(dir + "/dm/uuid")
	num, err := e.machine.ReadFile(dir + "/dev")
	size, err2 := readNumber(e.machine, dir+"/size")
	if err := errors.Join(err, err2); err != nil {
		return device{}, false, fmt.Errorf("volume %s: device %s: %w", v.ID, path.Base(dir), err)
	}
	if !strings.HasPrefix(string(uuid), "CRYPT-LUKS2-"+strings.ReplaceAll(v.LUKSUUID, "-", "")+"-") {
		return device{}, false, fmt.Errorf("volume %s: %w: device %s has its name and another device-mapper UUID: %q", v.ID, drivebay.ErrRefused, path.Base(dir), strings.TrimSpace(string(uuid)))
	}
	name := path.Base(dir)
	return device{dev: "/dev/" + name, num: strings.TrimSpace(string(num)), name: name, size: size * 512}, true, nil
}

// unlock creates the decrypted device with a key, or tests the key if the device exists. It first
// removes a device that was left over on a drive that is gone.
func (e *Engine) unlock(ctx context.Context, v *drivebay.Volume, key []byte) (device, error) {
	is, err := e.isPlain(v)
	switch {
	case err != nil:
		return device{}, err
	case is:
		err = e.tryKey(ctx, v, key)
	default:
		if err = e.lock(ctx, v); err == nil {
			err = e.withKey(ctx, v, key, "open", plainName(v.ID))
		}
	}
	if err != nil {
		return device{}, err
	}
	return e.plain(v)
}

// tryKey returns ErrSecret if nothing in the header opens with the key.
func (e *Engine) tryKey(ctx context.Context, v *drivebay.Volume, key []byte) error {
	return e.withKey(ctx, v, key, "open", "--test-passphrase")
}

// withKey runs cryptsetup on the device that holds the header of a volume.
func (e *Engine) withKey(ctx context.Context, v *drivebay.Volume, key []byte, action string, words ...string) error {
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.machine.RunInput(ctx, key, append([]string{"cryptsetup", action, "--type", "luks2", "--key-file", "-", disk.Path()}, words...)...)
		return err
	})
}

// onHeader calls do with the device that holds the header of a volume, after proving that it does.
func (e *Engine) onHeader(ctx context.Context, v *drivebay.Volume, do func(context.Context, host.Disk) error) error {
	d, err := e.activate(ctx, backingPiece(v))
	if err != nil {
		return err
	}
	return touch(ctx, e, v, mountTime, func(ctx context.Context) error {
		disk, err := e.machine.OpenDisk(ctx, d.dev, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if disk.DevNum() != d.num {
			return fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, d.dev)
		}
		if err := e.proveHeader(disk, v); err != nil {
			return err
		}
		return cryptError(do(ctx, disk))
	})
}

// cryptError translates the exit statuses of cryptsetup(8). A header without any key is treated like
// a wrong key.
func cryptError(err error) error {
	exit, ok := errors.AsType[*host.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.Code == 2, strings.Contains(exit.Stderr, "No usable keyslot"):
		return fmt.Errorf("%w: the key does not unlock the volume: %w", drivebay.ErrSecret, err)
	case exit.Code == 5:
		return fmt.Errorf("%w: %w", drivebay.ErrBusy, err)
	}
	return err
}

// lock removes the decrypted device. Without a device the volume is locked already.
func (e *Engine) lock(ctx context.Context, v *drivebay.Volume) error {
	_, is, err := e.mapping(v)
	if err != nil || !is {
		return err
	}
	err = touch(ctx, e, v, unmountTime, func(ctx context.Context) error {
		_, err := e.machine.Run(ctx, "cryptsetup", "close", plainName(v.ID))
		return cryptError(err)
	})
	if err != nil {
		return fmt.Errorf("volume %s: lock: %w", v.ID, err)
	}
	return nil
}

// unlock creates the decrypted device of an encrypted volume for a stage. It first removes mounts of
// a decrypted device that is gone.
func (s *mountState) unlock(ctx context.Context, at mountPath, secrets drivebay.Secrets) error {
	if s.v.LUKSUUID == "" {
		return nil
	}
	key, err := passphrase(secrets)
	if err != nil {
		return err
	}
	if s.d.num == "" && len(s.ours(at)) > 0 {
		if err := s.clear(ctx, at); err != nil {
			return err
		}
	}
	d, err := s.Engine.unlock(ctx, &s.v, key)
	if err != nil {
		return err
	}
	s.d = d
	if err := s.keepHeader(ctx, &s.v); err != nil { // the volume can be used without the copy
		s.log.Warn("no copy of the header", "op", "stage", "volume", s.v.ID, "err", err)
	}
	return s.widen(ctx, secrets)
}

// widen grows the decrypted device to the size of the device below it. The kernel keeps the key where
// only the process that set it finds it, so the key is needed again (cryptsetup-resize(8)).
func (s *mountState) widen(ctx context.Context, secrets drivebay.Secrets) error {
	if s.v.LUKSUUID == "" {
		return nil
	}
	d, err := s.device(&s.v)
	if err != nil {
		return err
	}
	if s.d.num == "" || s.d.size+luksHeader >= d.size {
		return nil
	}
	key, err := passphrase(secrets)
	if err != nil {
		return fmt.Errorf("%w; it grows when it is staged the next time", err)
	}
	err = touch(ctx, s.Engine, &s.v, mountTime, func(ctx context.Context) error {
		_, err := s.machine.RunInput(ctx, key, "cryptsetup", "resize", "--key-file", "-", plainName(s.v.ID))
		return cryptError(err)
	})
	if err != nil {
		return err
	}
	s.d, err = s.plain(&s.v)
	return err
}

// lockUnused removes the decrypted device if the volume is neither published nor mounted.
func (s *mountState) lockUnused(ctx context.Context) error {
	if s.v.LUKSUUID == "" || len(s.now) > 0 {
		return nil
	}
	t, err := s.freshTable(ctx)
	if err != nil || len(t.of(s.d)) > 0 {
		return err
	}
	return s.lock(ctx, &s.v)
}

// lockAgain is lockUnused after a failed stage. It only logs its own error.
func (s *mountState) lockAgain(ctx context.Context) {
	if err := s.lockUnused(context.WithoutCancel(ctx)); err != nil {
		s.log.Warn("it stays unlocked", "op", "stage", "volume", s.v.ID, "err", err)
	}
}

// growsInUse reports whether a growth has a second part, above the volume's device.
func growsInUse(v *drivebay.Volume) bool { return v.Mode == drivebay.ModeFS || v.LUKSUUID != "" }
