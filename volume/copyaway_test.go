package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// threeDrives are two of a kind, the smaller the faster copied, and one of another.
func threeDrives() hostsim.Spec { return drivesOf("1GB") }

// onAPartition is a volume with noise in it on an NVMe drive.
func (s *stand) onAPartition(r drivebay.VolumeRequest) drivebay.Volume {
	s.Helper()
	if r.Class.Backing == "" {
		r = requests()["a partition"]
	}
	r.Size.Required, r.Class.Drives = 64<<20, drivebay.TypeNVMe
	v := s.make("v", r)
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	for _, at := range []int64{20 << 20, 40<<20 + 512, int64(v.Size) - 1<<20} {
		random.Read(noise)
		s.write(v, noise, at)
	}
	return v
}

// sum is of all that is in a volume's partition.
func (s *stand) sum(v drivebay.Volume) uint64 {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.device(v), false)
	s.must(err)
	defer disk.Close()
	var h maphash.Hash
	h.SetSeed(seed)
	if _, err := io.Copy(&h, io.NewSectionReader(disk, 0, int64(disk.Size()))); err != nil {
		s.Fatal(err)
	}
	return h.Sum64()
}

func (s *stand) lead(v drivebay.Volume, verb drivebay.LeaveVerb) {
	s.Helper()
	s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], verb, ""))
	time.Sleep(10 * time.Second)
}

// until waits until something is so.
func (s *stand) until(what string, is func() bool) {
	s.Helper()
	for range 100 {
		if is() {
			return
		}
		time.Sleep(3 * time.Second)
	}
	all := ""
	for _, v := range s.e.Volumes().Volumes {
		all += fmt.Sprintf("\n%+v, %q", v.Volume, v.Work)
	}
	for _, d := range s.mgr.Snapshot().Drives {
		all += fmt.Sprintf("\n%s %v %+v", d.ID, d.Usage, d.Leaving)
	}
	s.Fatalf("not %s:%s", what, all)
}

// zero says whether there is nothing in b. The race detector would look at each byte that a loop or bytes.Equal touches.
func zero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

// left wants a volume to be on another drive, with what was in it, and nothing of it
// on the old one.
func (s *stand) left(v drivebay.Volume, sum uint64) drivebay.Volume {
	s.Helper()
	old := s.drive(v)
	s.until("moved", func() bool {
		return s.of(v).Location.Drives[0] != old.ID && s.of(v).Work == "" && s.drive(v).Usage == drivebay.UsageReleased
	})
	is := s.of(v).Volume
	if got := s.sum(is); got != sum || is.Usage != drivebay.VolumeInUse || is.CSIStatus != drivebay.CSICreated || is.Size != v.Size || is.LUKSUUID != v.LUKSUUID {
		s.Fatalf("moved: same data %v, %+v", got == sum, is)
	}
	s.read(*old, func(r io.ReaderAt) {
		b := make([]byte, 1<<20)
		for at := range int64(96) {
			if _, err := r.ReadAt(b, at<<20); err != nil || !zero(b) {
				s.Errorf("something is left on the old drive at %d MiB: %v", at, err)
			}
		}
	})
	return is
}

func (s *stand) waits(v drivebay.Volume, text string) {
	s.Helper()
	s.until("waiting: "+text, func() bool {
		d := s.drive(v)
		return d.Leaving != nil && strings.Contains(d.Leaving.Cause, text)
	})
}

// events are the causes of one kind.
func (s *stand) events(kind drivebay.EventKind) (out []string) {
	s.Helper()
	all, err := s.st.Events(0, 1000)
	s.must(err)
	for _, e := range all {
		if e.Kind == kind {
			out = append(out, e.Cause)
		}
	}
	return out
}

// leftOn returns the drives that the events about what volumes left name.
func (s *stand) leftOn() (drives []string) {
	s.Helper()
	all, err := s.st.Events(0, 1000)
	s.must(err)
	for _, e := range all {
		if e.Kind == drivebay.EventVolumeLeft {
			drives = append(drives, e.Drive)
		}
	}
	return drives
}

// TestCopyAway: a volume that nobody has leaves its drive with all that is in it.
func TestCopyAway(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{
		"ext4": requests()["ext4 on a partition"], "a partition": requests()["a partition"], "a drive": requests()["a drive"],
		"encrypted ext4": encryptedRequests()["ext4 on a partition"], "an encrypted partition": encryptedRequests()["a partition"],
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, threeDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				v := s.onAPartition(r)
				sum := s.sum(v)
				s.lead(v, drivebay.LeaveRelease)
				is := s.left(v, sum)
				if is.Location.Kind != v.Location.Kind || s.drive(is).Type != drivebay.TypeNVMe || len(s.events(drivebay.EventVolumeMoved)) != 1 {
					s.Errorf("it is on %+v", is.Location)
				}
				s.must(s.stage(is, with(rightKey)), s.unstage(is), s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
			})
		})
	}
}

// TestCopyWaitsForUnrecordedUsers: records that were lost do not free a volume of its users,
// whose paths the mount table still has.
func TestCopyWaitsForUnrecordedUsers(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"ext4": requests()["ext4 on a partition"], "a partition": requests()["a partition"], "a drive": requests()["a drive"],
		"an encrypted partition": encryptedRequests()["a partition"]} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, threeDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				v := s.onAPartition(r)
				s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
				s.forget()
				s.lead(v, drivebay.LeaveRelease)
				time.Sleep(20 * time.Minute)
				if now := s.of(v); !slices.Equal(now.Location.Drives, v.Location.Drives) || s.drive(v).Usage != drivebay.UsageReleasing {
					s.Fatalf("it moved under its user: %+v; drive: %v", now.Volume, s.drive(v).Usage)
				}
				if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
					s.Fatal("deleted under its user")
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				s.left(s.of(v).Volume, s.sum(v))
			})
		})
	}
}

// TestCopyWaits: for its user, for room, and not when the drive stays after all.
func TestCopyWaits(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		v := s.onAPartition(requests()["ext4 on a partition"])
		s.must(s.stage(v), s.publish(v, "pod"))
		s.lead(v, drivebay.LeaveRelease)
		s.waits(v, "published at "+target(v, "pod")+": stop the pod that uses it; the copy starts then")
		s.must(s.unpublish(v, "pod"))
		s.waits(v, "staged at "+staging(v))
		s.must(s.unstage(v))
		s.left(v, s.sum(v))
	})
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		wide := requests()["a partition"]
		wide.Size.Required, wide.Class.Drives = 890<<20, drivebay.TypeNVMe
		other := s.make("other", wide)
		s.lead(v, drivebay.LeaveRelease)
		s.waits(v, "no other drive of its class has room for it")
		s.must(s.e.DeleteVolume(s.Context(), other.ID))
		s.left(v, s.sum(v))
	})
}

// TestCopyWaitsForSmallBlocks: a volume does not move to a drive with larger blocks than its own, where Linux mounts no filesystem
// whose sectors are smaller, and waits for another one. A drive with smaller blocks will do.
func TestCopyWaitsForSmallBlocks(t *testing.T) {
	t.Parallel()
	of := func(serial string, block int) hostsim.Group {
		return hostsim.Group{Count: 1, Kind: hostsim.KindNVMe, Serial: serial, Size: "10GB", Block: block}
	}
	for _, blocks := range []int{512, 4096} {
		spec := hostsim.Spec{Drives: []hostsim.Group{of("FIRST", blocks), of("OTHER", 4608-blocks), of("THIRD", 512)}}
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			id := map[string]string{}
			for _, d := range s.mgr.Snapshot().Drives {
				id[d.Serial] = d.ID
			}
			s.must(s.mgr.Cordon(s.Context(), id["OTHER"], true), s.mgr.Cordon(s.Context(), id["THIRD"], true))
			time.Sleep(time.Minute)
			v := s.make("v", requests()["xfs on a partition"])
			s.must(s.mgr.Cordon(s.Context(), id["OTHER"], false))
			room, err := s.e.Room(s.Context(), v.ID, drivebay.RoomQuery{Leave: id["FIRST"]})
			s.must(err)
			s.lead(v, drivebay.LeaveRelease)
			to := "OTHER"
			if blocks == 512 {
				s.waits(v, "no other drive of its class has room for it, with blocks no larger than those of its drive")
				s.must(s.mgr.Cordon(s.Context(), id["THIRD"], false))
				to = "THIRD"
			}
			s.until("moved", func() bool { return s.of(v).Location.Drives[0] != id["FIRST"] })
			if at := s.of(v).Location.Drives[0]; at != id[to] || (room.Target == "") != (blocks == 512) {
				t.Errorf("from blocks of %d it has moved to %s, and could move to %q (%s)", blocks, at, room.Target, room.Against)
			}
		})
	}
}

// TestStageWins: whoever wants the volume has it at once, and what he writes is
// copied later.
func TestStageWins(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		s.lead(v, drivebay.LeaveRelease)
		s.until("copying", func() bool { done, total, ok := s.e.CopyProgress(v.ID); return ok && done > 20<<20 && total == v.Size })
		if is := s.of(v); is.Work != "move" || is.OperationalStatus != drivebay.Maintenance {
			s.Errorf("meanwhile: %q, %v", is.Work, is.OperationalStatus)
		}
		s.until("its progress is shown", func() bool {
			p := s.of(v).Progress
			return p != nil && p.Done > 0 && p.Total == v.Size && !p.End.IsZero()
		})
		began := time.Now()
		s.must(s.stage(v))
		if took := time.Since(began); took > time.Second {
			s.Errorf("it took %v", took)
		}
		s.write(v, []byte("written meanwhile"), 1<<20)
		if _, _, ok := s.e.CopyProgress(v.ID); ok {
			s.Error("it is being copied while it is staged")
		}
		s.waits(v, "staged at")
		s.must(s.unstage(v))
		s.left(v, s.sum(v))
		if p := s.of(v).Progress; p != nil {
			s.Errorf("it has moved, and %+v is shown", p)
		}
	})
}

// TestCopyTakenBack: what was copied goes again when the drive stays, or when the
// volume is removed or grown.
func TestCopyTakenBack(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(s *stand, v drivebay.Volume){
		"cancelled": func(s *stand, v drivebay.Volume) { s.lead(v, drivebay.LeaveCancel) },
		"let go": func(s *stand, v drivebay.Volume) {
			s.must(s.e.ReleaseVolume(s.Context(), v.ID))
			s.until("let go", func() bool { return s.of(v).Work == "" && s.drive(v).Usage == drivebay.UsageReleased })
			s.lead(v, drivebay.LeaveCancel)
		},
		"removed": func(s *stand, v drivebay.Volume) { s.must(s.e.DeleteVolume(s.Context(), v.ID)) },
		"grown": func(s *stand, v drivebay.Volume) {
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 128 << 20})
			s.must(err)
			s.lead(v, drivebay.LeaveCancel)
		},
	} {
		onMachine(t, threeDrives(), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{})
			s.lead(v, drivebay.LeaveRelease)
			s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 20<<20 })
			do(s, v)
			if what != "removed" {
				s.until(what, func() bool { return s.of(v).Work == "" && s.of(v).Usage == drivebay.VolumeInUse })
				if is := s.of(v); is.Location.Partition != v.Location.Partition || is.OperationalStatus != drivebay.Operative {
					s.Errorf("%s: %+v", what, is.Volume)
				}
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			}
			s.blank()
		})
	}
}

// TestTakenBackStaysSo: a copy that is being taken back is not gone on with, whatever
// is asked for meanwhile: its target may be wiped already.
func TestTakenBackStaysSo(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, threeDrives(), volume.Options{After: k.step, CopyRate: 1 << 20}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		sum := s.sum(v)
		s.lead(v, drivebay.LeaveRelease)
		s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 20<<20 })
		k.anew(2)
		s.lead(v, drivebay.LeaveCancel)
		s.until("killed", k.dead)
		if steps := k.steps(); steps[1] != "wipe" {
			s.Fatalf("killed after %q", steps)
		}
		k.arm(0)
		s.lead(v, drivebay.LeaveRelease)
		s.start()
		is := s.left(v, sum)
		s.onDrive(s.drive(is).Name, func(_ host.Disk, table *gpt.Table) {
			if p, _ := table.Find(is.Location.Partition); p.Type != "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e04" {
				s.Errorf("it is there as %+v", p)
			}
		})
		s.forget()
		s.must(s.stage(s.of(v).Volume))
	})
}

// badSectors makes sectors of a volume unreadable, by bytes from its beginning.
func (s *stand) badSectors(v drivebay.Volume, at, n uint64) {
	s.Helper()
	text, err := s.sim.ReadFile("sys/class/block/" + s.device(v) + "/start")
	s.must(err)
	var start uint64
	fmt.Sscan(string(text), &start)
	s.must(s.sim.Inject(hostsim.Fault{Drive: s.drive(v).Serial, Fault: "unreadable", Args: hostsim.Args{"sector": fmt.Sprint(start + at/512), "n": fmt.Sprint(n / 512)}}))
}

// TestUnreadable: what cannot be read is named to the byte, and nothing goes on
// without an operator's word; what he lets go of stays told until he lets it be.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{})
			s.badSectors(v, 1<<20+512, 1024)
			s.badSectors(v, 9<<20, 512)
			s.lead(v, drivebay.LeaveRelease)
			const told = "1536 bytes at (offset+length) 1049088+1024, 9437184+512"
			s.waits(v, told)
			is := s.of(v)
			if is.Usage != drivebay.VolumeUsageFailed || !strings.Contains(is.UsageFailure.Cause, told) || is.Location.Partition != v.Location.Partition || reasons(is.Condition) == "" {
				s.Fatalf("it is %+v, %v", is.Volume, is.Condition)
			}
			if restart {
				s.start()
				s.waits(v, told)
			}
			s.must(s.e.AcceptLoss(s.Context(), v.ID))
			if err := s.e.AcceptLoss(s.Context(), v.ID); !errors.Is(err, drivebay.ErrInvalid) {
				s.Errorf("accepted twice: %v", err)
			}
			s.until("moved", func() bool { return s.of(v).Usage == drivebay.VolumeInUse && s.of(v).Work == "" })
			is = s.of(v)
			want := []drivebay.Extent{{Offset: 1049088, Length: 1024}, {Offset: 9437184, Length: 512}}
			if is.Lost == nil || fmt.Sprint(is.Lost.Extents) != fmt.Sprint(want) || is.Condition.Severity() != drivebay.SeverityDataLoss || reasons(is.Condition) != "DataLost" {
				s.Fatalf("moved: %+v, %v", is.Lost, is.Condition)
			}
			if err := s.e.ClearVolume(s.Context(), v.ID); err != nil || s.of(v).Condition.Abnormal() {
				s.Errorf("let be: %v, %v", err, s.of(v).Condition)
			}
			if n := len(s.events(drivebay.EventVolumeDataLoss)); n != 2 {
				s.Errorf("%d events of lost data", n)
			}
		})
	}
}

// TestScatteredSectors: many sectors of a volume that lie apart cannot be read. The copy lacks these
// blocks and nothing beside them: they are zeros, not what was read before them.
func TestScatteredSectors(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		want := bytes.Repeat([]byte("full"), 4<<20)
		s.write(v, want, 24<<20)
		const n = 100
		for i := range uint64(n) {
			s.badSectors(v, 30<<20+i*(32<<10), 512)
			clear(want[6<<20+i*(32<<10):][:s.drive(v).LogicalBlock])
		}
		s.lead(v, drivebay.LeaveRelease)
		s.waits(v, "bytes")
		s.must(s.e.AcceptLoss(s.Context(), v.ID))
		s.until("moved", func() bool { is := s.of(v); return is.Lost != nil && is.Work == "" })
		if block := uint64(s.drive(v).LogicalBlock); s.of(v).Lost.Bytes != n*block {
			s.Errorf("%d bytes are lost, in blocks of %d", s.of(v).Lost.Bytes, block)
		}
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.device(s.of(v).Volume), false)
		s.must(err)
		defer disk.Close()
		got := make([]byte, len(want))
		_, err = disk.ReadAt(got, 24<<20)
		s.must(err)
		for i := range got {
			if got[i] != want[i] {
				s.Fatalf("byte %d is %#x, want %#x", 24<<20+i, got[i], want[i])
			}
		}
	})
}

// TestReadableAgain: a second try that can read everything loses nothing.
func TestReadableAgain(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		sum := s.sum(v)
		s.badSectors(v, 30<<20, 4096)
		s.lead(v, drivebay.LeaveRelease)
		s.waits(v, "4096 bytes")
		s.inject(v.Location.Drives[0], "heal")
		s.must(s.e.RetryVolume(s.Context(), v.ID))
		if is := s.left(v, sum); is.Lost != nil {
			s.Errorf("it has lost %v", is.Lost)
		}
	})
}

// TestCopyHangs: a drive that says nothing holds up nobody else, and nothing is lost.
func TestCopyHangs(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		sum := s.sum(v)
		s.lead(v, drivebay.LeaveRelease)
		s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 10<<20 })
		s.inject(v.Location.Drives[0], "hang")
		r := requests()["ext4 on a partition"]
		r.Class.Drives, r.Size.Required = drivebay.TypeHDD, 64<<20
		other := s.make("other", r)
		s.must(s.stage(other), s.unstage(other))
		time.Sleep(20 * time.Minute)
		if is := s.of(v); is.Usage != drivebay.VolumeReleasing || is.Lost != nil || is.Location.Partition != v.Location.Partition {
			s.Errorf("it hangs: %+v", is.Volume)
		}
		s.inject(v.Location.Drives[0], "heal")
		s.left(v, sum)
	})
}

// TestTargetGoes: the drive that a volume is copied to is pulled, and another one is chosen. The
// unfinished copy on the first one is wiped when that is back.
func TestTargetGoes(t *testing.T) {
	t.Parallel()
	spec := threeDrives()
	spec.Drives[0].Count = 3
	onMachine(t, spec, volume.Options{CopyRate: 1 << 20}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		sum := s.sum(v)
		s.lead(v, drivebay.LeaveRelease)
		s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 10<<20 })
		to := s.record(v).Work.Move.To.Drives[0]
		s.inject(to, "vanish")
		if is := s.left(v, sum); is.Location.Drives[0] == to {
			s.Errorf("it is on %v, which is gone", is.Location.Drives)
		}
		s.inject(to, "return")
		s.until("wiped", func() bool {
			d, _ := s.mgr.Snapshot().Find(to)
			return len(s.record(v).Left) == 0 && s.of(v).Work == "" && d.Content.Kind == drivebay.ContentBlank
		})
		if all := s.e.Volumes().Volumes; len(all) != 1 || s.sum(all[0].Volume) != sum {
			s.Errorf("there are %+v", all)
		}
	})
}

// TestCopyIsLeft: the drive that a volume was moved from, or is being copied to, is pulled before
// its copy is wiped. The volume can be used and grown. It is not deleted until the drive is back or
// given up, and its copy is wiped when the drive returns, also after a restart.
func TestCopyIsLeft(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"returns", "returns after a restart", "returns before the deletion", "is given up"} {
		for pulled, step := range map[string]string{"from": "settled", "to": "kernel drivebay-new-"} {
			var pull atomic.Pointer[func()]
			after := func(_, name string) error {
				if strings.HasPrefix(name, step) {
					if do := pull.Swap(nil); do != nil {
						(*do)()
					}
				}
				return nil
			}
			onMachine(t, sameDrives(3), volume.Options{After: after}, func(s *stand) {
				v := s.onAPartition(drivebay.VolumeRequest{})
				var drive, gone string
				pullNow := func() {
					m := s.record(v).Work.Move
					drive = m.From.Drives[0]
					if pulled == "to" {
						drive = m.To.Drives[0]
					}
					gone = s.serialOf(drive)
					s.must(s.sim.Inject(hostsim.Fault{Drive: gone, Fault: "vanish"}))
				}
				pull.Store(&pullNow)
				s.lead(v, drivebay.LeaveRelease)
				time.Sleep(time.Minute)
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 128 << 20})
				s.must(err)
				if end == "returns before the deletion" {
					s.must(s.sim.Inject(hostsim.Fault{Drive: gone, Fault: "return"}))
					time.Sleep(time.Minute)
				} else if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "force-remove") {
					t.Errorf("%s %s: deleted: %v", pulled, end, err)
				}
				switch end {
				case "is given up":
					if d, _ := s.mgr.Snapshot().Find(drive); d.Usage == drivebay.UsageInUse {
						s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveRelease, ""))
					}
					s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveForce, "it is lost"))
					s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
					return
				case "returns after a restart":
					s.start()
					fallthrough
				case "returns":
					s.must(s.sim.Inject(hostsim.Fault{Drive: gone, Fault: "return"}))
					time.Sleep(time.Minute)
				}
				s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
				time.Sleep(time.Minute)
				s.blank()
			})
		}
	}
}
