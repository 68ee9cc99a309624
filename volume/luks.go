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

// An encrypted volume is a LUKS2 header, and behind it the data, which
// device-mapper shows in plain while the volume is staged. Everything else about it
// is as with any other volume, of which the device in plain is the device.

// luksHeader is the room for the header: that of cryptsetup by itself.
const luksHeader = 16 * mib

// overhead is what an encrypted volume takes beyond its size. What says that it is
// one is the UUID of its header, or the word of its class.
func overhead(encrypted string) uint64 {
	if encrypted == "" {
		return 0
	}
	return luksHeader
}

// sizeOfWork is how large what is under way makes a volume's piece of the drive.
func sizeOfWork(r *drivebay.VolumeRecord) uint64 {
	return r.Work.Size + overhead(r.Volume.LUKSUUID)
}

// below is an encrypted volume as its piece of the drive, header and all.
func below(v *drivebay.Volume) *drivebay.Volume {
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

// theKey is the passphrase of a caller of CSI-Addons. Who has none may not: to its
// tables that is the same as a wrong one, and no field that is missing.
func theKey(secrets drivebay.Secrets) ([]byte, error) {
	if key, err := passphrase(secrets); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("%w: there is no %q", drivebay.ErrSecret, drivebay.SecretPassphrase)
}

// canEncrypt says why nothing can be encrypted on this machine. Only a yes is
// remembered: what is missing can be installed, and who did not answer can be asked
// again. A kernel that has dm-crypt built in names it like a loaded one.
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

// unable is ErrNoSupport, unless it is only that nobody has answered in time.
func unable(what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("whether volumes can be encrypted here: %w", err)
	}
	return fmt.Errorf("encryption: %w: %s: %w", drivebay.ErrNoSupport, what, err)
}

// keyMemory is what it takes to try a passphrase, in KiB, however fast the machine
// is. cryptsetup by itself takes up to 1 GiB for each: all volumes of a machine
// that comes up are staged at once.
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

// hasHeader says whether the header that was chosen for a volume is on its piece.
func hasHeader(c drivebay.Content, v *drivebay.Volume) bool {
	return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Partition == "" && s.Offset == 0 && s.Format == "crypto_LUKS" && strings.EqualFold(s.UUID, v.LUKSUUID)
	})
}

// encrypted is a new volume with its header. One that a killed cryptsetup left, or
// that another passphrase was for, is made anew: nobody was handed the volume yet.
// This step is asked of volumes only that still say of themselves that they are half
// made: their partition by its type, a logical volume by its tags.
func (e *Engine) encrypted(v *drivebay.Volume, secrets drivebay.Secrets) step {
	return step{
		name: "encrypt",
		done: func(ctx context.Context) (bool, error) {
			c, err := e.contentOf(ctx, below(v))
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
			if err := e.onDevice(ctx, below(v), true, clearMarks); err != nil {
				return err
			}
			return e.onDevice(ctx, below(v), false, func(ctx context.Context, disk host.Disk) error {
				if c := content.Detect(disk, disk.Size(), disk.BlockSize()); c.Kind != drivebay.ContentBlank {
					return fmt.Errorf("%w: it is not blank: %s", drivebay.ErrRefused, cannotBlank(c))
				}
				_, err := e.machine.RunInput(ctx, key, luksFormat(v, disk.Path())...)
				return err
			})
		},
	}
}

// unmade takes back that a step was made.
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

// erased is an encrypted volume without its keys: from then on nobody reads it,
// however long the rest of the wipe takes.
func (e *Engine) erased(v *drivebay.Volume, there func(context.Context) (bool, error)) []step {
	if v.LUKSUUID == "" {
		return nil
	}
	erase := e.made(v.ID, "erase", func(ctx context.Context) error {
		is, err := there(ctx)
		if err == nil && is {
			err = e.onDevice(ctx, below(v), true, func(ctx context.Context, disk host.Disk) error { return loseKeys(ctx, v, disk) })
		}
		return errors.Join(err, e.dropHeader(v))
	})
	return []step{e.locked(v), erase}
}

// loseKeys overwrites a header. A thin pool writes elsewhere what a snapshot ever
// shared, and leaves what was there before (Linux, drivers/md/dm-thin.c,
// break_sharing): of such a block the drive has to be told that nobody needs it.
func loseKeys(ctx context.Context, v *drivebay.Volume, disk host.Disk) error {
	n := min(luksHeader, disk.Size())
	if v.Location.Kind == drivebay.LocationThin {
		if err := disk.Discard(ctx, 0, n); err != nil && !errors.Is(err, host.ErrUnsupported) {
			return err
		}
	}
	return errors.Join(disk.Zero(ctx, 0, n), disk.Sync())
}
