package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// onDev opens a device of the simulated machine.
func (s *stand) onDev(name string, f func(host.Disk) error) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+name, false)
	s.must(err)
	defer disk.Close()
	s.must(f(disk), disk.Sync())
}

// TestDeleteUnseen: a volume whose physical volume LVM does not see is not deleted, and is
// wiped by the same call once LVM sees it.
func TestDeleteUnseen(t *testing.T) {
	t.Parallel()
	for _, backing := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		for _, others := range []bool{false, true} {
			for _, encrypted := range []bool{false, true} {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					r := partitionOf(1 << 30)
					r.Class.Backing, r.Class.Wipe = backing, drivebay.WipeZero
					if others {
						s.make("keeps the group", r)
					}
					if encrypted {
						r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
					}
					v := s.make("secret", r)
					label := make([]byte, 512)
					for _, id := range v.Location.Drives {
						d, _ := s.mgr.Snapshot().Find(id)
						s.onDev(partOf(d), func(disk host.Disk) error {
							if _, err := disk.ReadAt(label, 512); err != nil {
								return err
							}
							bad := append([]byte{}, label...)
							bad[32+5] ^= 0x80
							_, err := disk.WriteAt(bad, 512)
							return err
						})
					}
					time.Sleep(2 * time.Minute)
					for range 3 {
						if err := s.e.DeleteVolume(s.Context(), v.ID); !askedAgain(err) {
							s.Fatalf("%s: delete: %v, want unavailable", backing, err)
						}
						time.Sleep(20 * time.Second)
					}
					for _, id := range v.Location.Drives {
						d, _ := s.mgr.Snapshot().Find(id)
						s.onDev(partOf(d), func(disk host.Disk) error {
							b := make([]byte, 512)
							_, err := disk.ReadAt(b, 512)
							b[32+5] ^= 0x80
							_, err2 := disk.WriteAt(b, 512)
							return errors.Join(err, err2)
						})
					}
					time.Sleep(2 * time.Minute)
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
					time.Sleep(2 * time.Minute)
					if _, back := s.e.Volumes().Get(v.ID); back {
						s.Errorf("%s: it is back", backing)
					}
				})
			}
		}
	}
}

func partOf(d *drivebay.Drive) string {
	if d.Type == drivebay.TypeNVMe {
		return d.Name + "p1"
	}
	return d.Name + "1"
}

// TestDeleteWithoutDrive: a volume whose drive is pulled or fails is not deleted, and is
// gone with a drive that was taken out for good.
func TestDeleteWithoutDrive(t *testing.T) {
	t.Parallel()
	for _, backing := range allBackings {
		for _, fault := range []string{"vanish", "eio", "hang"} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				r := partitionOf(1 << 30)
				r.Class.Backing, r.Class.Wipe = backing, drivebay.WipeZero
				v := s.make("secret", r)
				drive := s.drive(v)
				s.must(s.sim.Inject(hostsim.Fault{Drive: drive.Serial, Fault: fault}))
				defer func() { _ = s.sim.Inject(hostsim.Fault{Drive: drive.Serial, Fault: "heal"}) }()
				for _, wait := range []time.Duration{0, 3 * time.Second, 5 * time.Minute} {
					time.Sleep(wait)
					err := s.e.DeleteVolume(s.Context(), v.ID)
					if !errors.Is(err, drivebay.ErrUnavailable) && !(fault == "hang" && errors.Is(err, drivebay.ErrTimeout)) {
						s.Fatalf("%s, %s: delete: %v, want unavailable", backing, fault, err)
					}
				}
				s.must(s.sim.Inject(hostsim.Fault{Drive: drive.Serial, Fault: "heal"}))
				time.Sleep(2 * time.Minute)
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			})
		}
	}
}
