package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
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
func encrypt(v *drivebay.Volume, c drivebay.Class) bool {
	if c.Encryption == "" || v.LUKSUUID != "" {
		return false
	}
	v.LUKSUUID = newUUID()
	v.Size -= min(v.Size, luksHeader)
	return true
}

var errNoPassphrase = fmt.Errorf("%w: the secrets have no %q", drivebay.ErrInvalid, drivebay.SecretPassphrase)

func passphrase(secrets drivebay.Secrets) ([]byte, error) {
	if p := secrets[drivebay.SecretPassphrase]; p != "" {
		return []byte(p), nil
	}
	return nil, errNoPassphrase
}

// cannotEncrypt says why nothing can be encrypted on this machine; it is asked once.
// A kernel that has dm-crypt built in names it like a loaded one.
func (e *Engine) cannotEncrypt() string {
	e.mayLUKS.Do(func() {
		ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
		defer cancel()
		if _, err := e.machine.Run(ctx, "cryptsetup", "--version"); err != nil {
			e.noLUKS = "this machine has no cryptsetup: " + err.Error()
			return
		}
		if _, err := e.machine.ReadDir("sys/module/dm_crypt"); err == nil {
			return
		}
		if _, err := e.machine.Run(ctx, "modprobe", "dm-crypt"); err != nil {
			e.noLUKS = "its kernel has no dm-crypt: " + err.Error()
		}
	})
	return e.noLUKS
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
			if errors.Is(err, drivebay.ErrSecret) {
				return false, nil
			}
			return err == nil, err
		},
		do: func(ctx context.Context) error {
			key, err := passphrase(secrets)
			if err == nil {
				err = errors.Join(e.lock(ctx, v), e.dropHeader(v.ID), e.unmade(v.ID, "zero"))
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
			err = e.onDevice(ctx, below(v), true, func(ctx context.Context, disk host.Disk) error {
				return errors.Join(disk.Zero(ctx, 0, min(luksHeader, disk.Size())), disk.Sync())
			})
		}
		return errors.Join(err, e.dropHeader(v.ID))
	})
	return []step{e.locked(v), erase}
}

// Where a LUKS2 header says what it is (LUKS2 On-Disk Format, 2.2): its label, UUID
// and subsystem, which is our word for the filesystem in it.
const (
	luksMagic       = "LUKS\xba\xbe\x00\x02"
	luksLabelAt     = 24
	luksUUIDAt      = 168
	luksSubsystemAt = 208
	luksEnd         = 256
)

var errNoHeader = fmt.Errorf("%w: there is no LUKS2 header", drivebay.ErrRefused)

type luksWords struct{ label, uuid, subsystem string }

// readHeader reads what the header of an encrypted volume says of itself.
func readHeader(r io.ReaderAt) (luksWords, error) {
	b := make([]byte, 4096)
	if _, err := r.ReadAt(b, 0); err != nil {
		return luksWords{}, fmt.Errorf("LUKS header: %w", err)
	}
	if string(b[:len(luksMagic)]) != luksMagic {
		return luksWords{}, errNoHeader
	}
	text := func(from, to int) string { s, _, _ := strings.Cut(string(b[from:to]), "\x00"); return s }
	return luksWords{text(luksLabelAt, luksLabelAt+48), text(luksUUIDAt, luksSubsystemAt), text(luksSubsystemAt, luksEnd)}, nil
}

// adoptHeader takes in what the header of a volume says that was found; why, what
// is wrong with it.
func (e *Engine) adoptHeader(ctx context.Context, v *drivebay.Volume) (why string, err error) {
	var is luksWords
	err = e.onDevice(ctx, below(v), false, func(_ context.Context, disk host.Disk) (err error) {
		is, err = readHeader(disk)
		return err
	})
	v.Size -= min(v.Size, luksHeader)
	switch {
	case errors.Is(err, errNoHeader) || err == nil && is.label != plainName(v.ID):
		v.LUKSUUID = newUUID() // of nothing: without its header it opens to nobody
		return "its LUKS header cannot be found on it", nil
	case err != nil:
		return "", fmt.Errorf("volume %s: %w", v.ID, err)
	}
	v.LUKSUUID, v.FSType = is.uuid, is.subsystem
	return "", nil
}
