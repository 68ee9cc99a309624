package volume_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestEncryptedLetGo: what is unlocked on a drive that left is closed, whether the
// drive is gone or back under another number, and never used again. A logical volume
// that lost its drive stays as it is until it is unstaged, encrypted or not.
func TestEncryptedLetGo(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"ext4 on a partition": true, "a partition": true, "a linear volume": false, "xfs on linear": false, "ext4 on thin": false} {
		for _, back := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make(name, encryptedRequests()[name])
				s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
				dead, _ := s.plain(v)
				const text = "all that I know!"
				s.first(dead, text)
				d := s.drive(v)
				s.inject(d.ID, "vanish")
				time.Sleep(10 * time.Second)
				if back {
					s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
					time.Sleep(30 * time.Second)
				}
				want := map[bool]error{true: drivebay.ErrBusy, false: drivebay.ErrUnavailable}[back]
				if err := s.publish(v, "other"); again && !errors.Is(err, want) {
					s.Errorf("%s: published from a dead device: %v", name, err)
				}
				s.must(s.unpublish(v, "pod"), s.unpublish(v, "other"))
				if !back || !again {
					s.must(s.unstage(v))
				}
				if err := s.stage(v, with(wrongKey)); err == nil || back && !errors.Is(err, drivebay.ErrSecret) {
					s.Errorf("%s, back %v: staged with another key: %v", name, back, err)
				}
				if _, open := s.plain(v); open {
					s.Errorf("%s, back %v: the dead device is still there", name, back)
				}
				if back {
					s.backAgain(v, text)
				}
			})
		}
	}
}

// backAgain wants a volume that came back to be what it was.
func (s *stand) backAgain(v drivebay.Volume, text string) {
	s.Helper()
	s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
	if dev, open := s.plain(v); !open || s.first(dev, "") != text {
		s.Errorf("%s: back, it is not what it was", v.Name)
	}
	if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || len(s.mounts(staging(v))) > 1 {
		s.Errorf("%s: back, it is %v with %d mounts", v.Name, is.CSIStatus, len(s.mounts(staging(v))))
	}
	s.must(s.unpublish(v, "pod"), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	s.blank()
}

// TestEncryptedForgotten: a volume that is forgotten while its drive is away leaves
// no device, and keeps the copy of its header for the day when the drive is back.
func TestEncryptedForgotten(t *testing.T) {
	t.Parallel()
	headers := t.TempDir()
	onMachine(t, smallDrives(), volume.Options{Headers: headers}, func(s *stand) {
		r := encryptedRequests()["ext4 on a partition"]
		v := s.make("v", r)
		s.must(s.stage(v, with(rightKey)))
		d := s.drive(v)
		s.inject(d.ID, "vanish")
		time.Sleep(10 * time.Second)
		s.must(s.sim.UnmountBehind(staging(v)), s.e.ForgetVolume(s.Context(), v.ID))
		if _, open := s.plain(v); open {
			s.Error("its device is left")
		}
		other := s.make("v", r) // elsewhere, under the same name
		if other.ID != v.ID || other.LUKSUUID == v.LUKSUUID {
			s.Fatalf("made again: %+v", other)
		}
		s.must(s.e.DeleteVolume(s.Context(), other.ID))
		if left := s.copies(headers); len(left) != 1 || !strings.Contains(left[0], v.LUKSUUID) {
			s.Errorf("copies %v", left)
		}
		s.inject(d.Serial, "return")
		time.Sleep(30 * time.Second)
		s.must(s.stage(v, with(rightKey)), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		if left := s.copies(headers); len(left) > 0 {
			s.Errorf("copies %v", left)
		}
		s.blank()
	})
}

func (s *stand) copies(headers string) (names []string) {
	s.Helper()
	all, err := os.ReadDir(headers)
	s.must(err)
	for _, c := range all {
		names = append(names, c.Name())
	}
	return names
}

// TestEncryptedDamaged: a volume whose header is damaged is made anew by nobody and
// by no key, and opens again with the header that was kept, after a loss of all
// records, too.
func TestEncryptedDamaged(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		headers := filepath.Join(t.TempDir(), "luks")
		onMachine(t, smallDrives(), volume.Options{Headers: headers}, func(s *stand) {
			r := encryptedRequests()["xfs on a partition"]
			v := s.make("v", r)
			name := filepath.Join(headers, s.copies(headers)[0])
			kept, err := os.ReadFile(name)
			s.must(err)
			for path, want := range map[string]os.FileMode{name: 0o600, headers: 0o700} {
				if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
					s.Errorf("%s: %v, %v", path, st.Mode(), err)
				}
			}
			kept[len(kept)-1]++ // the header is changed, where only cryptsetup knows what stands there
			s.write(v, kept, 0)
			for _, was := range []string{"whole and old", "not whole"} {
				s.must(s.stage(v, with(rightKey)), s.unstage(v)) // which makes the copy anew
				if is, err := os.ReadFile(name); err != nil || !bytes.Equal(is, kept) {
					s.Errorf("a copy that was %s is kept: %v", was, err)
				}
				s.must(os.WriteFile(name, []byte("LUKS"), 0o600))
			}
			s.must(s.stage(v, with(rightKey)), s.unstage(v))
			s.write(v, make([]byte, 1<<20), 0)
			if lost {
				s.forget()
			}
			for _, key := range []string{rightKey, wrongKey} {
				r.Name, r.Secrets = "v", secrets(key)
				_, err := s.e.CreateVolume(s.Context(), r)
				if staged := s.stage(v, with(key)); err != nil || !errors.Is(staged, drivebay.ErrRefused) || !strings.Contains(staged.Error(), name) {
					s.Errorf("lost %v: without its header: %v, %v", lost, err, staged)
				}
			}
			s.write(v, kept, 0)
			s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
			if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || is.FSType != "xfs" {
				s.Errorf("lost %v: put back, it is %v with %q", lost, is.CSIStatus, is.FSType)
			}
		})
	}
}

// write writes to a partition, behind everybody's back.
func (s *stand) write(v drivebay.Volume, b []byte, at int64) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.device(v), false)
	s.must(err)
	defer disk.Close()
	_, err = disk.WriteAt(b, at)
	s.must(err)
}

// TestEncryptedFoundHalf: what is left of a volume that was being made when its
// record was lost becomes an encrypted one of exactly the size that is asked for.
func TestEncryptedFoundHalf(t *testing.T) {
	t.Parallel()
	k := &killer{after: 2}
	onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
		r := encryptedRequests()["a partition"]
		r.Name, r.Size = "v", drivebay.SizeRange{Required: 1 << 30, Limit: 1 << 30}
		_, err := s.e.CreateVolume(s.Context(), r)
		if err == nil || len(k.steps()) != 2 {
			s.Fatalf("%v after %v", err, k.steps())
		}
		k.arm(0)
		s.forget()
		if is := s.e.Volumes().Volumes; len(is) != 1 || is[0].Mode != drivebay.ModeUnknown {
			s.Fatalf("found %+v", is)
		}
		v, err := s.e.CreateVolume(s.Context(), r)
		s.must(err, s.stage(v, with(rightKey)))
		if v.Size != 1<<30 || v.LUKSUUID == "" {
			s.Errorf("made %+v", v)
		}
	})
}

// TestEncryptedCopies: snapshots and copies of an encrypted volume are what it is,
// header and all: they open with its key, and with no other.
func TestEncryptedCopies(t *testing.T) {
	t.Parallel()
	headers := t.TempDir()
	onMachine(t, smallDrives(), volume.Options{Headers: headers}, func(s *stand) {
		for _, name := range []string{"a thin volume", "ext4 on thin"} {
			r := encryptedRequests()[name]
			v := s.make(name, r)
			s.must(s.stage(v, with(rightKey)))
			dev, _ := s.plain(v)
			const text = "all that I know!"
			s.first(dev, text)
			snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			s.must(err, s.unstage(v))
			for what, source := range map[string]drivebay.Source{"clone": {Volume: v.ID}, "restored": {Snapshot: snap.ID}} {
				r.Name, r.Source, r.Size.Required = what, source, v.Size+8<<20
				plainly := r
				plainly.Class.Encryption = ""
				if _, err := s.e.CreateVolume(s.Context(), plainly); !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("%s: copied into a class that is not encrypted: %v", name, err)
				}
				c := s.make(what, r)
				if err := s.stage(c, with(wrongKey)); !errors.Is(err, drivebay.ErrSecret) || c.LUKSUUID != v.LUKSUUID || c.Size != r.Size.Required {
					s.Errorf("%s, %s: %v, %+v", name, what, err, c)
				}
				s.must(s.stage(v, with(rightKey)), s.stage(c, with(rightKey))) // both at once
				if dev, _ := s.plain(c); s.first(dev, "") != text || s.sizeOf(dev) != c.Size {
					s.Errorf("%s, %s: it has %d bytes, or others", name, what, s.sizeOf(dev))
				}
				s.must(s.unstage(c), s.unstage(v), s.e.DeleteVolume(s.Context(), c.ID))
			}
			if left := s.copies(headers); len(left) != 1 || !strings.HasPrefix(left[0], v.ID) {
				s.Errorf("%s: copies of the header: %v", name, left)
			}
			s.must(s.e.DeleteVolume(s.Context(), v.ID), s.e.DeleteSnapshot(s.Context(), snap.ID))
		}
		plain := s.make("plain", requests()["a thin volume"])
		r := encryptedRequests()["a thin volume"]
		r.Name, r.Source = "sealed", drivebay.Source{Volume: plain.ID}
		if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrInvalid) {
			s.Errorf("the copy of what is not encrypted is to be: %v", err)
		}
	})
}
