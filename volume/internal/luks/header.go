package luks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Offsets of the label, UUID and subsystem in a LUKS2 header (LUKS2 On-Disk Format, 2.2). The subsystem
// holds the type of the filesystem in the volume.
const (
	luksMagic       = "LUKS\xba\xbe\x00\x02"
	luksLabelAt     = 24
	luksUUIDAt      = 168
	luksSubsystemAt = 208
	luksEnd         = 256
)

var errNoHeader = fmt.Errorf("%w: there is no LUKS2 header", drivebay.ErrRefused)

type luksWords struct{ label, uuid, subsystem string }

// readHeader reads the label, UUID and subsystem of a LUKS2 header.
func readHeader(r io.ReaderAt) (luksWords, error) {
	b := make([]byte, luksEnd)
	if _, err := r.ReadAt(b, 0); err != nil {
		return luksWords{}, fmt.Errorf("LUKS header: %w", err)
	}
	text := func(from, to int) string { s, _, _ := strings.Cut(string(b[from:to]), "\x00"); return s }
	is := luksWords{text(luksLabelAt, luksLabelAt+48), text(luksUUIDAt, luksSubsystemAt), text(luksSubsystemAt, luksEnd)}
	if string(b[:len(luksMagic)]) != luksMagic || !partitions.IsUUID(is.uuid) {
		return luksWords{}, errNoHeader
	}
	return is, nil
}

// AdoptHeader sets the UUID and filesystem of a found volume from its header; why is what is wrong with
// the header. If it is damaged, its copy has them, so that the volume can be used once the header has been
// put back.
func (e *Crypt) AdoptHeader(ctx context.Context, v *drivebay.Volume) (why string, err error) {
	var is luksWords
	err = e.lookAt(ctx, v, e.below(v), func(_ context.Context, disk host.Disk) (err error) {
		is, err = readHeader(disk)
		return err
	})
	v.Size -= min(v.Size, partitions.LUKSHeader)
	switch {
	case errors.Is(err, errNoHeader) || err == nil && is.label != device.PlainName(v.ID):
		why = "its LUKS header cannot be found on it"
		if is = e.copied(v.ID); is.uuid == "" {
			is.uuid = ledger.NewUUID() // it matches no header, and opens nothing
		}
	case err != nil:
		return "", fmt.Errorf("volume %s: %w", v.ID, err)
	}
	v.LUKSUUID, v.FSType = is.uuid, is.subsystem
	return why, nil
}

// proveHeader returns an error unless the disk has the recorded header.
func (e *Crypt) proveHeader(disk host.Disk, v *drivebay.Volume) error {
	if err := device.RefuseReplicated(disk, ""); err != nil {
		return err
	}
	is, err := readHeader(disk)
	if err == nil && is.uuid != v.LUKSUUID { // its copy would replace another header, without which the data are lost
		return fmt.Errorf("%w: its LUKS header should be %s, and is %s", drivebay.ErrRefused, v.LUKSUUID, is.uuid)
	}
	if err != nil && e.copyOf(v) != nil {
		err = fmt.Errorf("%w; cryptsetup luksHeaderRestore puts it back from its copy, %s", err, e.headerFile(v))
	}
	return err
}

// A few bad sectors in the header make an encrypted volume unreadable, even with the key. The engine keeps
// a copy of the header beside the records until the volume is deleted. The copy opens nothing without the
// passphrase. It has the form that cryptsetup luksHeaderRestore reads.

// headerFile returns the path of a header's copy. It contains the UUID of the header: another volume of
// the same name, made after this one was forgotten, does not replace the copy.
func (e *Crypt) headerFile(v *drivebay.Volume) string {
	return filepath.Join(e.Opt.Headers, v.ID+"."+v.LUKSUUID+".luks")
}

// unfinished is the suffix of a copy that is being written. The next copy overwrites what a crash leaves,
// and dropHeader removes it.
const unfinished = ".new"

// headerKept returns the step that keeps a copy of the header.
func (e *Crypt) headerKept(v *drivebay.Volume) steps.Step {
	return steps.Step{
		Name: "copy of the header",
		Done: func(context.Context) (bool, error) { return e.Opt.Headers == "" || len(e.copyOf(v)) == headerCopy, nil },
		Do:   func(ctx context.Context) error { return e.KeepHeader(ctx, v) },
	}
}

// copyOf returns the copy of a volume's header; nil if none can be read.
func (e *Crypt) copyOf(v *drivebay.Volume) []byte {
	b, err := os.ReadFile(e.headerFile(v))
	if err != nil {
		return nil
	}
	if is, err := readHeader(bytes.NewReader(b)); err != nil || is.uuid != v.LUKSUUID {
		return nil
	}
	return b
}

// copied returns what the copy of a header says, if there is exactly one for a volume's id.
func (e *Crypt) copied(id string) luksWords {
	if e.Opt.Headers == "" {
		return luksWords{}
	}
	names, _ := filepath.Glob(filepath.Join(e.Opt.Headers, id+".*.luks")) // an id has no special characters
	if len(names) != 1 {
		return luksWords{}
	}
	f, err := os.Open(names[0])
	if err != nil {
		return luksWords{}
	}
	defer f.Close()
	is, _ := readHeader(f)
	return is
}

// KeepHeader writes the copy, and writes it again when the header has changed: a passphrase that was
// revoked must not open our copy.
func (e *Crypt) KeepHeader(ctx context.Context, v *drivebay.Volume) error {
	if e.Opt.Headers == "" {
		return nil
	}
	b, err := e.headerNow(ctx, v)
	if err == nil && !bytes.Equal(b, e.copyOf(v)) {
		err = writeCopy(e.headerFile(v), b)
	}
	if err != nil {
		return fmt.Errorf("copy of the header: %w", err)
	}
	return nil
}

// headerNow reads the header from the drive.
func (e *Crypt) headerNow(ctx context.Context, v *drivebay.Volume) ([]byte, error) {
	b := make([]byte, headerCopy)
	err := e.lookAt(ctx, v, e.below(v), func(_ context.Context, disk host.Disk) error {
		_, err := disk.ReadAt(b, 0)
		return err
	})
	if err != nil { // the drive may answer later
		return nil, err
	}
	return b, nil
}

func writeCopy(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name+unfinished))
	}
	if err := os.Rename(name+unfinished, name); err != nil {
		return err
	}
	return errors.Join(host.SyncFolder(filepath.Dir(name)), host.SyncFolder(filepath.Dir(filepath.Dir(name)))) // MkdirAll may have made the folder
}

// dropHeader removes the copy of the header.
func (e *Crypt) dropHeader(v *drivebay.Volume) error {
	if e.Opt.Headers == "" {
		return nil
	}
	for _, name := range []string{e.headerFile(v), e.headerFile(v) + unfinished} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("copy of the header: %w", err)
		}
	}
	// An old copy that returns after a loss of power opens the volume with a passphrase that was revoked.
	if err := host.SyncFolder(e.Opt.Headers); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("copy of the header: %w", err)
	}
	return nil
}
