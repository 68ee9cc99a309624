package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// tinyDrives are some NVMe drives that are quickly read as a whole.
func tinyDrives(n int) hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: n, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "2GB"}}}
}

// bytesOf reads all of a drive that is not zero, by offset.
func (s *stand) bytesOf(name string) map[int64]string {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+name, false)
	s.must(err)
	defer disk.Close()
	out, b := map[int64]string{}, make([]byte, 4096)
	for _, at := range s.sim.Written("/dev/" + name) {
		_, err := disk.ReadAt(b, int64(at))
		s.must(err)
		out[int64(at)] = string(b)
	}
	return out
}

// clone copies a drive to another as dd does; afterwards the kernel reads its table.
func (s *stand) clone(from, to string) {
	s.Helper()
	whole := s.bytesOf(from)
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+to, false)
	s.must(err)
	defer disk.Close()
	for at, b := range whole {
		_, err := disk.WriteAt([]byte(b), at)
		s.must(err)
	}
	s.must(disk.Sync())
	t, err := gpt.Read(disk)
	s.must(err)
	for _, p := range t.Partitions {
		s.must(disk.AddPartition(p.Number, p.Start, p.Size))
	}
}

// other is a drive that none of some volumes is on.
func (s *stand) other(vs ...drivebay.Volume) drivebay.Drive {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		used := false
		for _, v := range vs {
			used = used || strings.Contains(strings.Join(v.Location.Drives, " "), d.ID)
		}
		if !used {
			return d
		}
	}
	s.Fatal("every drive is used")
	return drivebay.Drive{}
}

// mark writes into a raw volume of any backing.
func (s *stand) mark(v drivebay.Volume) {
	s.Helper()
	dev := "/dev/" + s.driveOf(v).Name + "p1"
	s.must(s.stage(v))
	if v.Location.VG != "" {
		dev = "/dev/" + v.Location.VG + "/" + v.Location.LV
	}
	disk, err := s.sim.OpenDisk(s.Context(), dev, false)
	s.must(err)
	_, err = disk.WriteAt([]byte("acknowledged data"), 1<<20)
	s.must(err, disk.Sync(), disk.Close(), s.unstage(v))
}

var backings = []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin}

// TestCopiedDrive: a drive of ours is copied to another claimed one. Neither is used for
// anything, both say so and so does the volume; when the copy is wiped all is as it was.
func TestCopiedDrive(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		t.Run(string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("precious", rawVolume(b))
				s.mark(v)
				from, to := s.driveOf(v), s.other(v)
				s.clone(from.Name, to.Name)
				time.Sleep(20 * time.Minute)
				before := [2]map[int64]string{s.bytesOf(from.Name), s.bytesOf(to.Name)}
				for _, d := range s.mgr.Snapshot().Drives {
					if d.Copy == "" || len(d.Refusals()) == 0 {
						t.Errorf("drive %s may be used: %q, %v", d.ID, d.Copy, d.Refusals())
					}
				}
				if is := s.of(v); len(severities(is.Condition, "DriveCopied")) != 1 {
					t.Errorf("the volume is %v: %v", is.OperationalStatus, is.Condition)
				}
				for _, b := range backings {
					if c, err := s.e.Capacity(s.Context(), rawVolume(b).Class); err != nil || c.Available > 0 {
						t.Errorf("capacity of %s: %+v, %v", b, c, err)
					}
				}
				r := rawVolume(b)
				r.Name, r.Size.Required = "other", 1<<30
				if o, err := s.e.CreateVolume(s.Context(), r); err == nil {
					t.Errorf("another volume is made: %+v", o.Location)
				}
				if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) {
					t.Errorf("staging it: %v", err)
				}
				if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
					t.Error("it is deleted")
				}
				s.start() // and a daemon that is started now finds the same
				for i, name := range []string{from.Name, to.Name} {
					if after := s.bytesOf(name); len(after) != len(before[i]) || !sameBytes(after, before[i]) {
						t.Errorf("drive %s was written to", name)
					}
				}
			})
		})
	}
}

func sameBytes(a, b map[int64]string) bool {
	for at := range a {
		if a[at] != b[at] {
			return false
		}
	}
	return true
}

// TestCopyGone: once the copy is pulled the original serves as before.
func TestCopyGone(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		t.Run(string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(3), volume.Options{}, func(s *stand) {
				v := s.make("precious", rawVolume(b))
				s.mark(v)
				to := s.other(v)
				s.clone(s.driveOf(v).Name, to.Name)
				time.Sleep(5 * time.Minute)
				disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+to.Name, false)
				s.must(err)
				table, err := gpt.Read(disk)
				s.must(err, disk.RemovePartition(1), table.Remove(table.Partitions[0].GUID), table.Write(disk), gpt.Erase(disk), disk.Close())
				time.Sleep(5 * time.Minute)
				if is := s.of(v); len(severities(is.Condition, "DriveCopied")) != 0 {
					t.Errorf("the volume is %v", is.Condition)
				}
				s.must(s.stage(v))
			})
		})
	}
}

// TestCopiedInUse: a copy that appears while the volume is in use does not stop it: it is
// there, can be unstaged, and is not staged again.
func TestCopiedInUse(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		t.Run(string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("precious", rawVolume(b))
				s.mark(v)
				s.must(s.stage(v), s.publish(v, "pod"))
				s.clone(s.driveOf(v).Name, s.other(v).Name)
				time.Sleep(20 * time.Minute)
				if is := s.of(v); len(severities(is.Condition, "DriveCopied")) != 1 || is.OperationalStatus != drivebay.Operative {
					t.Errorf("in use it is %v: %v", is.OperationalStatus, is.Condition)
				}
				s.must(s.stage(v), s.publish(v, "pod2")) // as it is, with no command to LVM
				s.must(s.unpublish(v, "pod"), s.unpublish(v, "pod2"), s.unstage(v))
				if err := s.stage(v); err == nil {
					t.Error("it is staged again")
				}
			})
		})
	}
}

// TestCopyAlone: the copy is there and the original is not: it is not the volume.
func TestCopyAlone(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		t.Run(string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("precious", rawVolume(b))
				s.mark(v)
				from, to := s.driveOf(v), s.other(v)
				s.clone(from.Name, to.Name)
				s.inject(from.ID, "vanish")
				time.Sleep(5 * time.Minute)
				d, _ := s.mgr.Snapshot().Find(to.ID)
				if !strings.Contains(d.Copy, from.ID) {
					t.Errorf("the copy says %q", d.Copy)
				}
				before := s.bytesOf(to.Name)
				if err := s.stage(v); err == nil {
					t.Error("the copy is staged as the volume")
				}
				r := rawVolume(b)
				r.Name, r.Size.Required = "other", 1<<30
				if o, err := s.e.CreateVolume(s.Context(), r); err == nil {
					t.Errorf("another volume is made on the copy: %+v", o.Location)
				}
				if is := s.of(v); is.OperationalStatus == drivebay.Operative {
					t.Errorf("the volume is %v: %v", is.OperationalStatus, is.Condition)
				}
				if !sameBytes(s.bytesOf(to.Name), before) {
					t.Error("the copy was written to")
				}
			})
		})
	}
}

// TestCopyPulled: the advice for a copied drive works as it is given. A copy that was pulled still counts, and the findings name the
// command that ends this. The original, with the volume on it, is not forgotten so while only the copy is there.
func TestCopyPulled(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("precious", rawVolume(b))
			s.mark(v)
			from, to := s.driveOf(v), s.other(v)
			s.clone(from.Name, to.Name)
			time.Sleep(5 * time.Minute)
			s.inject(from.ID, "vanish")
			time.Sleep(time.Minute)
			if err := s.e.ForgetDrive(s.Context(), from.ID, ""); err == nil {
				t.Errorf("%s: the drive of the volume is forgotten", b)
			}
			s.must(s.sim.Inject(hostsim.Fault{Drive: from.Serial, Fault: "return"}))
			time.Sleep(5 * time.Minute)
			s.inject(to.ID, "vanish")
			time.Sleep(5 * time.Minute)
			command := "`drivebay forget " + to.ID + "`"
			if is := s.of(v).Condition; !strings.Contains(reasons(is), "DriveCopied") || !strings.Contains(is.Message(), command) {
				t.Errorf("%s: its condition is %s", b, is.Message())
			}
			if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), command) {
				t.Errorf("%s: staged: %v", b, err)
			}
			s.must(s.e.ForgetDrive(s.Context(), to.ID, ""))
			time.Sleep(time.Minute)
			if is := s.of(v).Condition; is.Abnormal() {
				t.Errorf("%s: its condition is %s", b, is.Message())
			}
			s.must(s.stage(v))
		})
	}
}

// TestCopiedAndLost: while copies keep the volumes of a drive from being recorded again, each call for one says so.
func TestCopiedAndLost(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "a linear volume"} {
		for _, away := range []bool{false, true} {
			onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[name])
				copied := s.other(v)
				s.clone(s.drive(v).Name, copied.Name)
				time.Sleep(11 * time.Minute)
				if away {
					s.inject(copied.ID, "vanish")
					time.Sleep(time.Minute)
					s.loseRecord(v)
				} else {
					s.forget()
				}
				time.Sleep(11 * time.Minute)
				again := requests()[name]
				again.Name = "v"
				_, created := s.e.CreateVolume(s.Context(), again)
				for call, err := range map[string]error{"stage": s.stage(v), "create": created, "delete": s.e.DeleteVolume(s.Context(), v.ID)} {
					if err == nil || !strings.Contains(err.Error(), "one of the two is a copy") || !errors.Is(err, drivebay.ErrUnavailable) && !errors.Is(err, drivebay.ErrRefused) {
						t.Errorf("%s, its copy is away: %v; %s: %v", name, away, call, err)
					}
				}
			})
		}
	}
}
