package volume

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
)

// An encrypted volume is a LUKS2 header followed by the data. device-mapper shows the data in plain while
// the volume is staged. In all else it is like any other volume; its device is the plain one.

// luksHeader is the room for the header: the default of cryptsetup.
const luksHeader = 16 * mib

// overhead returns what an encrypted volume takes beyond its size. The argument is the UUID of its header
// or the encryption of its class; "" is not encrypted.
func overhead(encrypted string) uint64 {
	if encrypted == "" {
		return 0
	}
	return luksHeader
}

// sizeOfWork returns the size of a volume's piece of the drive after the current work.
func sizeOfWork(r *drivebay.VolumeRecord) uint64 {
	return r.Work.Size + overhead(r.Volume.LUKSUUID)
}

// backingPiece returns an encrypted volume as its piece of the drive, with the header.
func backingPiece(v *drivebay.Volume) *drivebay.Volume {
	out := *v
	out.LUKSUUID = ""
	return &out
}

// encrypt makes a volume that was found half made one of an encrypted class.
func encrypt(v *drivebay.Volume, c drivebay.Class) {
	if c.Encryption != "" && v.LUKSUUID == "" {
		v.LUKSUUID = newUUID()
		v.Size -= min(v.Size, luksHeader)
	}
}

var errNoPassphrase = fmt.Errorf("%w: the secrets have no %q", drivebay.ErrInvalid, drivebay.SecretPassphrase)

func passphrase(secrets drivebay.Secrets) ([]byte, error) {
	if p := secrets[drivebay.SecretPassphrase]; p != "" {
		return []byte(p), nil
	}
	return nil, errNoPassphrase
}

// theKey returns the passphrase of a CSI-Addons call. The tables of CSI-Addons treat a missing passphrase
// like a wrong one, not like a missing field.
func theKey(secrets drivebay.Secrets) ([]byte, error) {
	if key, err := passphrase(secrets); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("%w: there is no %q", drivebay.ErrSecret, drivebay.SecretPassphrase)
}

// canEncrypt returns why nothing can be encrypted on this machine. It remembers only success: a missing
// program can be installed, and one that did not answer can be asked again. A kernel that has dm-crypt
// built in names it like a loaded one.
func (e *Engine) canEncrypt(ctx context.Context) error {
	if e.mayLUKS.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.machine.Run(ctx, "cryptsetup", "--version"); err != nil {
		return unable("this machine has no cryptsetup", err)
	}
	if _, err := e.machine.ReadDir("sys/module/dm_crypt"); err != nil {
		if _, err := e.machine.Run(ctx, "modprobe", "dm-crypt"); err != nil {
			return unable("its kernel has no dm-crypt", err)
		}
	}
	e.mayLUKS.Store(true)
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
	keysRoom   = mib
	headerCopy = 2*16<<10 + keysRoom
)

func luksFormat(v *drivebay.Volume, dev string) []string {
	return []string{"cryptsetup", "luksFormat", "--batch-mode", "--type", "luks2", "--uuid", v.LUKSUUID, "--label", plainName(v.ID), "--subsystem", v.FSType,
		"--offset", strconv.Itoa(luksHeader / 512), "--luks2-keyslots-size", strconv.Itoa(keysRoom/mib) + "m",
		"--pbkdf", "argon2id", "--pbkdf-memory", strconv.Itoa(keyMemory), "--pbkdf-parallel", "1", "--key-file", "-", dev}
}

// hasHeader reports whether the header that was chosen for a volume is on its piece.
func hasHeader(c drivebay.Content, v *drivebay.Volume) bool {
	return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Partition == "" && s.Offset == 0 && s.Format == "crypto_LUKS" && strings.EqualFold(s.UUID, v.LUKSUUID)
	})
}

// encrypted is the step that writes the header of a new volume. A header that a killed cryptsetup left, or
// that has another passphrase, is made anew: the volume was not handed out yet. The step runs only for
// volumes that are still marked as half made: a partition by its type, a logical volume by its tags.
func (e *Engine) encrypted(v *drivebay.Volume, secrets drivebay.Secrets) step {
	return step{
		name: "encrypt",
		done: func(ctx context.Context) (bool, error) {
			c, err := e.contentOf(ctx, backingPiece(v))
			if err != nil || !hasHeader(c, v) {
				return false, err
			}
			key, err := passphrase(secrets)
			if err != nil {
				return false, err
			}
			err = e.tryKey(ctx, v, key)
			if _, said := errors.AsType[*host.ExitError](err); said {
				return false, nil
			}
			return err == nil, err
		},
		do: func(ctx context.Context) error {
			key, err := passphrase(secrets)
			if err == nil {
				err = errors.Join(e.lock(ctx, v), e.dropHeader(v), e.unmade(v.ID, "zero"))
			}
			if err != nil {
				return err
			}
			if err := e.onDevice(ctx, backingPiece(v), true, clearMarks); err != nil {
				return err
			}
			return e.onDevice(ctx, backingPiece(v), false, func(ctx context.Context, disk host.Disk) error {
				if c := content.Detect(disk, disk.Size(), disk.BlockSize()); c.Kind != drivebay.ContentBlank {
					return fmt.Errorf("%w: it is not blank: %s", drivebay.ErrRefused, cannotBlank(c))
				}
				_, err := e.machine.RunInput(ctx, key, luksFormat(v, disk.Path())...)
				return err
			})
		},
	}
}

// unmade records that a step is no longer done.
func (e *Engine) unmade(id, name string) error {
	_, err := e.change(id, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil {
			r.Work.Made = slices.DeleteFunc(r.Work.Made, func(m string) bool { return m == name || strings.HasPrefix(m, name+upTo) })
		}
		return nil
	})
	return err
}

func (e *Engine) unlocked(v *drivebay.Volume, secrets drivebay.Secrets) step {
	return step{
		name: "unlock",
		done: func(context.Context) (bool, error) { return e.isPlain(v) },
		do: func(ctx context.Context) error {
			key, err := passphrase(secrets)
			if err == nil {
				_, err = e.unlock(ctx, v, key)
			}
			return err
		},
	}
}

func (e *Engine) locked(v *drivebay.Volume) step {
	return step{
		name: "lock",
		done: func(context.Context) (bool, error) { _, is, err := e.mapping(v); return !is, err },
		do:   func(ctx context.Context) error { return e.lock(ctx, v) },
	}
}

// erased destroys the keys of an encrypted volume: from then on it cannot be read, however long the rest
// of the wipe takes.
func (e *Engine) erased(v *drivebay.Volume, there func(context.Context) (bool, error)) []step {
	if v.LUKSUUID == "" {
		return nil
	}
	erase := e.made(v.ID, "erase", func(ctx context.Context) error {
		is, err := there(ctx)
		if err == nil && is {
			err = e.onDevice(ctx, backingPiece(v), true, func(ctx context.Context, disk host.Disk) error { return loseKeys(ctx, v, disk) })
		}
		return errors.Join(err, e.dropHeader(v))
	})
	return []step{e.locked(v), erase}
}

// loseKeys overwrites a header. A thin pool writes elsewhere what a snapshot ever shared, and leaves what
// was there before (Linux, drivers/md/dm-thin.c, break_sharing): such a block is therefore discarded
// first.
func loseKeys(ctx context.Context, v *drivebay.Volume, disk host.Disk) error {
	n := min(luksHeader, disk.Size())
	if v.Location.Kind == drivebay.LocationThin {
		if err := disk.Discard(ctx, 0, n); err != nil && !errors.Is(err, host.ErrUnsupported) {
			return err
		}
	}
	return errors.Join(disk.Zero(ctx, 0, n), disk.Sync())
}
