package volume_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

const nextKey = "another horse\nwith another staple"

// TestRotateKey changes the passphrase of volumes in use and not in use, killed after
// each step: at every moment one of the two opens the volume, and after the same call
// again only the new one does, of the volume and of the copy of its header.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "ext4 on thin"} {
		for _, used := range []bool{true, false} {
			k := &killer{}
			for after, all := 1, false; !all && !t.Failed(); after += everyNth {
				headers, log := t.TempDir(), &bytes.Buffer{}
				opt := volume.Options{After: k.step, Headers: headers, Log: slog.New(slog.NewTextHandler(log, nil))}
				k.arm(0)
				onMachine(t, smallDrives(), opt, func(s *stand) {
					v := s.make(name, encryptedRequests()[name])
					s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
					if !used {
						s.must(s.unpublish(v, "pod"), s.unstage(v))
					}
					r := drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(rightKey), New: secrets(nextKey)}
					k.anew(after)
					err := s.e.RotateKey(s.Context(), r)
					all = err == nil
					if s.restarted(err) {
						if !s.opens(v, rightKey) && !s.opens(v, nextKey) {
							s.Errorf("%s, after %q: nothing opens it", name, k.steps())
						}
						s.must(s.e.RotateKey(s.Context(), r))
					}
					s.must(s.e.RotateKey(s.Context(), r)) // a replay
					if s.opens(v, rightKey) || !s.opens(v, nextKey) {
						s.Errorf("%s, after %q: the old one opens it %v, the new one %v", name, k.steps(), s.opens(v, rightKey), s.opens(v, nextKey))
					}
					if used {
						s.inUse(v, target(v, "pod"), false)
						s.must(s.unpublish(v, "pod"), s.unstage(v))
					}
					if s.active(v) != "" {
						s.Errorf("%s: it stays active", name)
					}
					s.must(s.stage(v, with(nextKey)), s.unstage(v))
					s.putBack(v, headers)
					if err := s.stage(v, with(rightKey)); !errors.Is(err, drivebay.ErrSecret) {
						s.Errorf("%s: the copy of the header opens with the old key: %v", name, err)
					}
					s.must(s.stage(v, with(nextKey)), s.unstage(v))
					if strings.Contains(log.String(), "horse") {
						s.Errorf("%s: a passphrase is in the log", name)
					}
				})
			}
			if len(k.steps()) < 4 {
				t.Errorf("%s: %q", name, k.steps())
			}
		}
	}
}

// opens says whether a key is one of a volume's, which it tells by a rotation from
// that key to itself.
func (s *stand) opens(v drivebay.Volume, key string) bool {
	s.Helper()
	err := s.e.RotateKey(s.Context(), drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(key), New: secrets(key)})
	if err != nil && !errors.Is(err, drivebay.ErrSecret) {
		s.Fatal(err)
	}
	return err == nil
}

// putBack writes the copy of a header over the header.
func (s *stand) putBack(v drivebay.Volume, headers string) {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(headers, v.ID+"."+v.LUKSUUID+".luks"))
	s.must(err)
	s.must(s.stage(v, with(nextKey)))
	defer func() { s.must(s.unstage(v)) }()
	plain, _ := s.plain(v)
	below, err := s.sim.ReadDir("sys/class/block/" + filepath.Base(plain) + "/slaves")
	s.must(err)
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+below[0], false)
	s.must(err)
	defer disk.Close()
	_, err = disk.WriteAt(b, 0)
	s.must(err)
}

// TestRotateKeyNot: a key that does not open the volume changes nothing.
func TestRotateKeyNot(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v, plain := s.make("v", encryptedRequests()["ext4 on a partition"]), s.make("plain", drivebay.VolumeRequest{})
		for name, c := range map[string]struct {
			r    drivebay.KeyRequest
			want error
		}{
			"a wrong key":      {drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(wrongKey), New: secrets(nextKey)}, drivebay.ErrSecret},
			"no key":           {drivebay.KeyRequest{Volume: v.ID, New: secrets(nextKey)}, drivebay.ErrSecret},
			"no new key":       {drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(rightKey)}, drivebay.ErrInvalid},
			"another path":     {drivebay.KeyRequest{Volume: v.ID, Path: kubelet + "/x", Secrets: secrets(rightKey), New: secrets(nextKey)}, drivebay.ErrNotFound},
			"not encrypted":    {drivebay.KeyRequest{Volume: plain.ID, Secrets: secrets(rightKey), New: secrets(nextKey)}, drivebay.ErrNoSupport},
			"there is no such": {drivebay.KeyRequest{Volume: "none", Secrets: secrets(rightKey), New: secrets(nextKey)}, drivebay.ErrNotFound},
		} {
			if err := s.e.RotateKey(s.Context(), c.r); !errors.Is(err, c.want) || strings.Contains(err.Error(), "horse") {
				s.Errorf("%s: %v", name, err)
			}
		}
		if !s.opens(v, rightKey) || s.opens(v, nextKey) || s.opens(v, wrongKey) {
			s.Error("its keys have changed")
		}
	})
}
