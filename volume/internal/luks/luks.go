package luks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// An encrypted volume is a LUKS2 header followed by the data. device-mapper shows the data in plain while
// the volume is staged. In all else it is like any other volume; its device is the plain one.

// Encrypt makes a volume that was found half made one of an encrypted class.
func Encrypt(v *drivebay.Volume, c drivebay.Class) {
	if c.Encryption != "" && !v.Encrypted() {
		v.LUKSUUID = ledger.NewUUID()
		v.Size -= min(v.Size, partitions.LUKSHeader)
	}
}

// Passphrase returns the passphrase in the secrets of a request.
func Passphrase(secrets drivebay.Secrets) ([]byte, error) {
	if p := secrets[drivebay.SecretPassphrase]; p != "" {
		return []byte(p), nil
	}
	return nil, place.ErrNoPassphrase
}

// TheKey returns the passphrase of a CSI-Addons call. The tables of CSI-Addons treat a missing passphrase
// like a wrong one, not like a missing field.
func TheKey(secrets drivebay.Secrets) ([]byte, error) {
	if key, err := Passphrase(secrets); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("%w: there is no %q", drivebay.ErrSecret, drivebay.SecretPassphrase)
}

// lackTime is how long it is remembered that this machine cannot encrypt: what it lacks can be installed.
const lackTime = 10 * time.Second

// CanEncrypt returns why nothing can be encrypted on this machine. The room of every class asks it many times at once.
func (e *Crypt) CanEncrypt(ctx context.Context) error {
	now := e.Machine.Now()
	if s := e.support.Load(); s != nil && (s.lacks == nil || now.Sub(s.at) < lackTime) {
		return s.lacks
	}
	err := e.lookForSupport(ctx)
	if err == nil || errors.Is(err, drivebay.ErrNoSupport) { // else it is not known
		e.support.Store(&support{err, now})
	}
	return err
}

// lookForSupport looks for cryptsetup and dm-crypt. A kernel that has dm-crypt built in names it like a loaded one.
func (e *Crypt) lookForSupport(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.Machine.Run(ctx, "cryptsetup", "--version"); err != nil {
		return unable("this machine has no cryptsetup", err)
	}
	if _, err := e.Machine.ReadDir("sys/module/dm_crypt"); err != nil {
		if _, err := e.Machine.Run(ctx, "modprobe", "dm-crypt"); err != nil {
			return unable("its kernel has no dm-crypt", err)
		}
	}
	return nil
}

// unable returns ErrNoSupport, unless the command only did not answer in time.
func unable(what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("whether volumes can be encrypted here: %w", err)
	}
	return fmt.Errorf("encryption: %w: %s: %w", drivebay.ErrNoSupport, what, err)
}

// keyMemory is the memory that it takes to try a passphrase, in KiB, however fast the machine is. The
// default of cryptsetup is up to 1 GiB each: all volumes of a machine that boots are staged at once.
const keyMemory = 64 << 10

// headerCopy is how much of the room the header uses: twice 16 KiB that describe
// it, and the keys (LUKS2 On-Disk Format, 2.1).
const (
	keysRoom   = partitions.MiB
	headerCopy = 2*16<<10 + keysRoom
)

func luksFormat(v *drivebay.Volume, dev string) []string {
	return []string{"cryptsetup", "luksFormat", "--batch-mode", "--type", "luks2", "--uuid", v.LUKSUUID, "--label", device.PlainName(v.ID), "--subsystem", v.FSType,
		"--offset", strconv.Itoa(partitions.LUKSHeader / 512), "--luks2-keyslots-size", strconv.Itoa(keysRoom/partitions.MiB) + "m",
		"--pbkdf", "argon2id", "--pbkdf-memory", strconv.Itoa(keyMemory), "--pbkdf-parallel", "1", "--key-file", "-", dev}
}

// hasHeader reports whether the header that was chosen for a volume is on its piece.
func hasHeader(c drivebay.Content, v *drivebay.Volume) bool {
	return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Partition == "" && s.Offset == 0 && s.Format == "crypto_LUKS" && strings.EqualFold(s.UUID, v.LUKSUUID)
	})
}

// encrypted is the step that writes the header of a new volume. A header that a killed cryptsetup left, or
// that has another passphrase, is created again: the volume was not handed out yet. The step runs only for
// volumes that are still marked as half made: a partition by its type, a logical volume by its tags.
func (e *Crypt) encrypted(v *drivebay.Volume, secrets drivebay.Secrets) steps.Step {
	return steps.Step{
		Name: "encrypt",
		Done: func(ctx context.Context) (bool, error) {
			c, err := e.contentOf(ctx, v, e.below(v))
			if err != nil || !hasHeader(c, v) {
				return false, err
			}
			key, err := Passphrase(secrets)
			if err != nil {
				return false, err
			}
			err = e.tryKey(ctx, v, key)
			if _, said := errors.AsType[*host.ExitError](err); said {
				return false, nil
			}
			return err == nil, err
		},
		Do: func(ctx context.Context) error {
			key, err := Passphrase(secrets)
			if err == nil {
				err = errors.Join(e.Device.Lock(ctx, v), e.dropHeader(v), e.Erase.Unmade(v.ID, "zero"))
			}
			if err != nil {
				return err
			}
			if err := e.On(ctx, v, e.below(v), true, erase.ClearMarks); err != nil {
				return err
			}
			return e.On(ctx, v, e.below(v), false, func(ctx context.Context, disk host.Disk) error {
				if c := content.Detect(disk, disk.Size(), disk.BlockSize()); c.Kind != drivebay.ContentBlank {
					return fmt.Errorf("%w: it is not blank: %s", drivebay.ErrRefused, erase.CannotBlank(c))
				}
				_, err := e.Machine.RunInput(ctx, key, luksFormat(v, disk.Path())...)
				return err
			})
		},
	}
}

// Overwrite zeroes or discards a range of a volume piece by piece, for the step of that name. If the
// range starts at 0, all of the volume is new or removed, and must not be open elsewhere.
func (e *Crypt) Overwrite(ctx context.Context, v *drivebay.Volume, name string, from, to uint64, do func(context.Context, host.Disk, uint64, uint64) error) error {
	return e.overwrite(ctx, v, e.Device.Stack(v), name, from, to, do)
}

// OverwritePiece is Overwrite for the volume's piece of the drive.
func (e *Crypt) OverwritePiece(ctx context.Context, v *drivebay.Volume, name string, from, to uint64, do func(context.Context, host.Disk, uint64, uint64) error) error {
	return e.overwrite(ctx, v, e.Device.Stack(v).Piece(), name, from, to, do)
}

func (e *Crypt) overwrite(ctx context.Context, v *drivebay.Volume, s device.Stack, name string, from, to uint64, do func(context.Context, host.Disk, uint64, uint64) error) error {
	defer e.Moves.Overwrites(v.ID, 0, 0)
	for at := max(from, e.Erase.Reached(v.ID, name)); at < to; at += erase.Piece {
		e.Moves.Overwrites(v.ID, at-from, to-from)
		if at > from && (at-from)%erase.Milestone == 0 {
			if err := e.Erase.Reach(v.ID, name, at); err != nil {
				return err
			}
		}
		err := e.On(ctx, v, s, from == 0, func(ctx context.Context, disk host.Disk) error {
			if to > disk.Size() {
				return fmt.Errorf("%w: the device has %s, smaller than the %s to write", drivebay.ErrRefused, partitions.SizeText(disk.Size()), partitions.SizeText(to))
			}
			if err := do(ctx, disk, at, min(erase.Piece, to-at)); err != nil {
				return err
			}
			return disk.Sync()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
