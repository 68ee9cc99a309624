package volume_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

const rightKey, wrongKey = "correct horse battery staple", "incorrect horse battery staple"

func secrets(key string) drivebay.Secrets {
	return drivebay.Secrets{drivebay.SecretPassphrase: key}
}

// encryptedRequests are an encrypted volume of every kind.
func encryptedRequests() map[string]drivebay.VolumeRequest {
	out := map[string]drivebay.VolumeRequest{}
	for name, r := range requests() {
		r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
		out[name] = r
	}
	return out
}

func with(key string) func(*drivebay.StageRequest) {
	return func(r *drivebay.StageRequest) { r.Secrets = secrets(key) }
}

// plain is the device of an encrypted volume while it is unlocked.
func (s *stand) plain(v drivebay.Volume) (dev string, there bool) {
	s.Helper()
	names, err := s.sim.ReadDir("sys/block")
	s.must(err)
	for _, name := range names {
		if title, _ := s.sim.ReadFile("sys/block/" + name + "/dm/name"); strings.TrimSpace(string(title)) == "drivebay-"+v.ID {
			return "/dev/" + name, true
		}
	}
	return "", false
}

// first reads and writes at the beginning of a device.
func (s *stand) first(dev, text string) string {
	s.Helper()
	disk, err := s.sim.OpenDisk(context.Background(), dev, false)
	s.must(err)
	defer disk.Close()
	if text != "" {
		_, err := disk.WriteAt([]byte(text), 1<<20)
		s.must(err)
	}
	b := make([]byte, 16)
	_, err = disk.ReadAt(b, 1<<20)
	s.must(err)
	return string(b)
}

// contains says whether a text is written anywhere on the drives where a volume's
// header and the beginning of its data can be.
func (s *stand) contains(text string) bool {
	s.Helper()
	found := false
	for _, d := range s.mgr.Snapshot().Drives {
		var before []byte // the end of the page before
		s.pages(d, func(_ int64, page []byte) {
			found = found || bytes.Contains(append(before, page...), []byte(text))
			before = slices.Clone(page[len(page)-len(text):])
		})
	}
	return found
}

// TestEncrypted is the life of encrypted volumes: none opens without its key, and
// nothing is left of one that was deleted.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	for name, r := range some(encryptedRequests()) {
		headers, log := t.TempDir(), &bytes.Buffer{}
		opt := volume.Options{Headers: headers, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		onMachine(t, smallDrives(), opt, func(s *stand) {
			var said []error
			fails := func(what string, want, err error) {
				s.Helper()
				if said = append(said, err); !errors.Is(err, want) {
					s.Errorf("%s: %s: %v", name, what, err)
				}
			}
			keyless := r
			keyless.Name, keyless.Secrets = name, nil
			_, err := s.e.CreateVolume(s.Context(), keyless)
			fails("made without a key", drivebay.ErrInvalid, err)
			v := s.make(name, r)
			if _, open := s.plain(v); open || v.LUKSUUID == "" || v.Parameters[drivebay.ParameterEncryption] != "luks2" {
				s.Errorf("%s: made: unlocked %v, %+v", name, open, v)
			}
			if r.Class.Backing != drivebay.BackingDrive && v.Size != 1<<30 {
				s.Errorf("%s: it has %d bytes", name, v.Size)
			}
			plainly := r
			plainly.Name, plainly.Class.Encryption = name, ""
			_, err = s.e.CreateVolume(s.Context(), plainly)
			fails("made again in plain", drivebay.ErrExists, err)
			fails("staged without a key", drivebay.ErrInvalid, s.stage(v))
			fails("staged with another key", drivebay.ErrSecret, s.stage(v, with(wrongKey)))
			if is := s.of(v); is.CSIStatus != drivebay.CSICreated {
				s.Errorf("%s: a wrong key makes it %v", name, is.CSIStatus)
			}
			for range 2 {
				s.must(s.stage(v, with(rightKey)))
			}
			fails("staged again with another key", drivebay.ErrSecret, s.stage(v, with(wrongKey)))
			s.must(s.publish(v, "pod"))
			dev, open := s.plain(v)
			const text = "all that I know!"
			if !open || v.Mode != drivebay.ModeFS && s.first(dev, "") != strings.Repeat("\x00", 16) {
				s.Fatalf("%s: unlocked %v", name, open)
			}
			if s.first(dev, text); s.contains(text) {
				s.Errorf("%s: it is written in plain", name)
			}
			s.start() // the daemon is started again while the volume is in use
			if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || is.Condition.Abnormal() {
				s.Errorf("%s: in use: %v, %v", name, is.CSIStatus, is.Condition)
			}
			if r.Class.Backing != drivebay.BackingDrive {
				s.expandEncrypted(v, fails)
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v), s.unstage(v))
			if _, open := s.plain(v); open {
				s.Errorf("%s: unstaged, it is still unlocked", name)
			}
			for _, size := range []uint64{5 << 29, 11 << 28} { // while nobody has it, and while it is staged
				if r.Class.Backing != drivebay.BackingDrive {
					_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size})
					s.must(err)
				}
				s.must(s.stage(v, with(rightKey)))
				if dev, _ := s.plain(v); s.first(dev, "") != text || s.sizeOf(dev) != s.of(v).Size || s.of(v).CSIStatus != drivebay.CSIVolumeReady {
					s.Errorf("%s: staged again it has %d bytes, or others, and is %v", name, s.sizeOf(dev), s.of(v).CSIStatus)
				}
			}
			s.must(s.unstage(v))
			s.nowhere(headers, log.String(), said)
			if b, err := os.ReadFile(filepath.Join(headers, v.ID+"."+v.LUKSUUID+".luks")); err != nil || !bytes.HasPrefix(b, []byte("LUKS")) {
				s.Errorf("%s: copy of the header: %v", name, err)
			}
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			if s.contains("LUKS\xba\xbe") {
				s.Errorf("%s: deleted, a header is left", name)
			}
			if left, _ := os.ReadDir(headers); len(left) > 0 {
				s.Errorf("%s: copies are left: %v", name, left)
			}
			s.blank()
		})
	}
}

// expandEncrypted grows a volume while it is in use.
func (s *stand) expandEncrypted(v drivebay.Volume, fails func(string, error, error)) {
	s.Helper()
	_, node, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
	if s.must(err); !node {
		s.Error("no growth on the node is due")
	}
	grow := func(sec drivebay.Secrets) error {
		_, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{Required: 2 << 30}, sec)
		return err
	}
	fails("grown without a key", drivebay.ErrInvalid, grow(nil))
	fails("grown with another key", drivebay.ErrSecret, grow(secrets(wrongKey)))
	s.must(grow(secrets(rightKey)))
	dev, _ := s.plain(v)
	if is := s.of(v); s.sizeOf(dev) != 2<<30 || is.Size != 2<<30 || is.CSIStatus != drivebay.CSIPublished {
		s.Errorf("grown: %d bytes, the record says %d, %v", s.sizeOf(dev), is.Size, is.CSIStatus)
	}
}

func (s *stand) sizeOf(dev string) uint64 {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), dev, false)
	s.must(err)
	defer disk.Close()
	return disk.Size()
}

// nowhere wants no trace of the passphrase in what we write and say.
func (s *stand) nowhere(headers, log string, said []error) {
	s.Helper()
	records, err := s.st.Volumes()
	s.must(err)
	text, err := json.Marshal([]any{records, s.e.Volumes(), s.mgr.Events(0, 0)})
	s.must(err)
	text = fmt.Append(text, log, said)
	copies, err := os.ReadDir(headers)
	s.must(err)
	for _, c := range copies {
		b, err := os.ReadFile(filepath.Join(headers, c.Name()))
		s.must(err)
		text = append(text, b...)
	}
	if bytes.Contains(text, []byte("horse battery")) || s.contains("horse battery") {
		s.Error("the passphrase is written down")
	}
	if len(log) == 0 || len(said) == 0 || len(copies) == 0 {
		s.Error("nothing was looked at")
	}
}
