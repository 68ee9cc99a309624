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

// plainName is device-mapper's name of an encrypted volume in plain, and the label
// of its header.
func plainName(id string) string { return content.OursPrefix + id }

// plain is the device that a volume is used as: that of an encrypted one is there
// while it is unlocked. No drive is touched.
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

// mapping finds the device in plain whatever it stands on now: the drive that it
// was made on may have gone, and be back as another device.
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

// mappingAt says whether a device in sysfs is a volume in plain. The kernel has one
// device of that name; what is in it device-mapper's identity says (cryptsetup,
// lib/libdevmapper.c, dm_prepare_uuid).
func (e *Engine) mappingAt(dir string, v *drivebay.Volume) (device, bool, error) {
	if title, err := e.mapperName(dir); err != nil || title != plainName(v.ID) {
		return device{}, false, nil // none of device-mapper's, or gone meanwhile
	}
	uuid, _ := e.machine.ReadFile(dir + "/dm/uuid")
	num, err := e.machine.ReadFile(dir + "/dev")
	size, err2 := readNumber(e.machine, dir+"/size")
	if err := errors.Join(err, err2); err != nil {
		return device{}, false, fmt.Errorf("volume %s: device %s: %w", v.ID, path.Base(dir), err)
	}
	if !strings.HasPrefix(string(uuid), "CRYPT-LUKS2-"+strings.ReplaceAll(v.LUKSUUID, "-", "")+"-") {
		return device{}, false, fmt.Errorf("volume %s: %w: device %s has its name and is not it: %q", v.ID, drivebay.ErrRefused, path.Base(dir), strings.TrimSpace(string(uuid)))
	}
	name := path.Base(dir)
	return device{dev: "/dev/" + name, num: strings.TrimSpace(string(num)), name: name, size: size * 512}, true, nil
}

// unlock makes a volume appear in plain for who has its key, and tries the key of
// one that is there already. A device that was left over on a drive that is gone
// is taken away first.
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

// tryKey is ErrSecret if nothing in the header opens with the key.
func (e *Engine) tryKey(ctx context.Context, v *drivebay.Volume, key []byte) error {
	return e.withKey(ctx, v, key, "open", "--test-passphrase")
}

// withKey runs cryptsetup on the piece of a volume that bears its header.
func (e *Engine) withKey(ctx context.Context, v *drivebay.Volume, key []byte, action string, words ...string) error {
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.machine.RunInput(ctx, key, append([]string{"cryptsetup", action, "--type", "luks2", "--key-file", "-", disk.Path()}, words...)...)
		return err
	})
}

// onHeader does something with the piece of a volume that bears its header, and has
// proved to.
func (e *Engine) onHeader(ctx context.Context, v *drivebay.Volume, do func(context.Context, host.Disk) error) error {
	d, err := e.activate(ctx, below(v))
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

// cryptError puts the exit statuses of cryptsetup(8) in our words. That a header
// has no keys at all is no better than the wrong key.
func cryptError(err error) error {
	exit, ok := errors.AsType[*host.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.Code == 2, strings.Contains(exit.Stderr, "No usable keyslot"):
		return fmt.Errorf("%w: the volume does not open with it: %w", drivebay.ErrSecret, err)
	case exit.Code == 5:
		return fmt.Errorf("%w: %w", drivebay.ErrBusy, err)
	}
	return err
}

// lock takes the device in plain away; one that is not there is locked.
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

// unlock has the device of an encrypted volume appear for a stage. Mounts of one
// that is gone are in its way.
func (s *scene) unlock(ctx context.Context, at spot, secrets drivebay.Secrets) error {
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
	if err := s.keepHeader(ctx, &s.v); err != nil { // it can be used all the same
		s.log.Warn("no copy of the header", "op", "stage", "volume", s.v.ID, "err", err)
	}
	return s.widen(ctx, secrets)
}

// widen makes the device in plain as large as what is below it. The kernel keeps
// the key where only who has put it there finds it, so that it is needed again
// (cryptsetup-resize(8)).
func (s *scene) widen(ctx context.Context, secrets drivebay.Secrets) error {
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

// lockUnused takes the device in plain away when nobody has any use for it.
func (s *scene) lockUnused(ctx context.Context) error {
	if s.v.LUKSUUID == "" || len(s.now) > 0 {
		return nil
	}
	t, err := s.freshTable(ctx)
	if err != nil || len(t.of(s.d)) > 0 {
		return err
	}
	return s.lock(ctx, &s.v)
}

// lockAgain is lockUnused for who has failed already, and tells of that.
func (s *scene) lockAgain(ctx context.Context) {
	if err := s.lockUnused(context.WithoutCancel(ctx)); err != nil {
		s.log.Warn("it stays unlocked", "op", "stage", "volume", s.v.ID, "err", err)
	}
}

// growsInUse says that a volume is grown by two: its device, and what is on it.
func growsInUse(v *drivebay.Volume) bool { return v.Mode == drivebay.ModeFS || v.LUKSUUID != "" }
