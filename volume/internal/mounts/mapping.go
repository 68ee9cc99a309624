package mounts

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Unlock creates the decrypted device of an encrypted volume for a stage. It first removes mounts of
// a decrypted device that is gone.
func (s *MountState) Unlock(ctx context.Context, at MountPath, secrets drivebay.Secrets) error {
	if !s.V.Encrypted() {
		return nil
	}
	key, err := luks.Passphrase(secrets)
	if err != nil {
		return err
	}
	if s.D.Num == "" && len(s.Ours(at)) > 0 {
		if err := s.Clear(ctx, at); err != nil {
			return err
		}
	}
	d, err := s.Mounter.LUKS.Unlock(ctx, &s.V, key)
	if err != nil {
		return err
	}
	s.D = d
	if err := s.LUKS.KeepHeader(ctx, &s.V); err != nil { // the volume can be used without the copy
		s.Log.Warn("no copy of the header", "op", "stage", "volume", s.V.ID, "err", err)
	}
	return s.widen(ctx, secrets)
}

// widen grows the decrypted device to the size of the device below it. The kernel keeps the key where
// only the process that set it finds it, so the key is needed again (cryptsetup-resize(8)).
func (s *MountState) widen(ctx context.Context, secrets drivebay.Secrets) error {
	if !s.V.Encrypted() {
		return nil
	}
	d, err := s.Device.Device(&s.V)
	if err != nil {
		return err
	}
	if s.D.Num == "" || s.D.Size+partitions.LUKSHeader >= d.Size {
		return nil
	}
	key, err := luks.Passphrase(secrets)
	if err != nil {
		return fmt.Errorf("%w; it grows when it is staged the next time", err)
	}
	err = steps.Touch(ctx, s.Steps, &s.V, steps.MountTime, func(ctx context.Context) error {
		_, err := s.Machine.RunInput(ctx, key, "cryptsetup", "resize", "--key-file", "-", device.PlainName(s.V.ID))
		return device.CryptError(err)
	})
	if err != nil {
		return err
	}
	s.D, err = s.Device.Plain(&s.V)
	return err
}

// lockUnused removes the decrypted device if the volume is neither published nor mounted.
func (s *MountState) lockUnused(ctx context.Context) error {
	if !s.V.Encrypted() || len(s.Now) > 0 {
		return nil
	}
	t, err := s.MountTable.FreshTable(ctx)
	if err != nil || len(t.Of(s.D)) > 0 {
		return err
	}
	return s.Device.Lock(ctx, &s.V)
}

// LockAgain is lockUnused after a failed stage. It only logs its own error.
func (s *MountState) LockAgain(ctx context.Context) {
	if err := s.lockUnused(context.WithoutCancel(ctx)); err != nil {
		s.Log.Warn("it stays unlocked", "op", "stage", "volume", s.V.ID, "err", err)
	}
}
