package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// twin copies the partition of a volume to another drive, as a move that was cut short
// right at its end leaves it.
func (s *stand) twin(v drivebay.Volume, to drivebay.Drive) {
	s.Helper()
	var entry gpt.Partition
	whole := map[int64]string{}
	from := s.driveOf(v)
	s.onDrive(from.Name, func(_ host.Disk, t *gpt.Table) { entry = t.Partitions[0] })
	for at, b := range s.bytesOf(from.Name) {
		if at >= int64(entry.Start) && at < int64(entry.Start+entry.Size) {
			whole[at-int64(entry.Start)] = b
		}
	}
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+to.Name, false)
	s.must(err)
	defer disk.Close()
	t, err := gpt.New(disk)
	s.must(err)
	t.GUID = drivebay.TableGUID(to.ID)
	p, err := t.Add(entry.Size, gpt.Align, entry.Type, "11111111-2222-4333-8444-555555555555", entry.Name)
	s.must(err)
	for at, b := range whole {
		_, err := disk.WriteAt([]byte(b), int64(p.Start)+at)
		s.must(err)
	}
	s.must(t.Write(disk), disk.AddPartition(p.Number, p.Start, p.Size))
}

// TestTwinsAfterLostStore: the records are lost while two drives have a whole partition of
// one volume. It is staged and published from neither before an operator decides, whatever
// becomes of the drives meanwhile.
func TestTwinsAfterLostStore(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"both are well", "the first is BAD", "one goes and is back", "started again", "grown and healed in vain", "the other one is used"} {
		for _, block := range []bool{false, true} {
			t.Run(way, func(t *testing.T) {
				onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
					r := drivebay.VolumeRequest{}
					if block {
						r = rawVolume(drivebay.BackingPartition)
					}
					v := s.make("precious", r)
					old := s.driveOf(v)
					other := s.other(v)
					s.twin(v, other)
					if way == "the first is BAD" {
						s.inject(old.ID, "fail")
						time.Sleep(20 * time.Minute)
					}
					s.forget()
					refused := func(when string) {
						t.Helper()
						is := s.of(v)
						if is.CSIStatus != drivebay.CSIFailed || !is.Condition.Abnormal() {
							t.Errorf("%s: it is %v: %v", when, is.CSIStatus, is.Condition)
						}
						if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "volume clear") {
							t.Errorf("%s: staged: %v", when, err)
						}
						if err := s.publish(v, "pod"); err == nil {
							t.Errorf("%s: published", when)
						}
						if err := s.e.RetryVolume(s.Context(), v.ID); err == nil {
							t.Errorf("%s: tried again", when)
						}
					}
					refused("found again")
					switch way {
					case "one goes and is back":
						for _, id := range []string{old.ID, other.ID} {
							s.inject(id, "vanish")
							time.Sleep(time.Minute)
							if err := s.stage(v); err == nil {
								t.Error("staged while one drive is away")
							}
							s.inject(id, "return")
							time.Sleep(time.Minute)
						}
					case "started again":
						s.start()
					case "grown and healed in vain":
						_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 64<<20})
						if !errors.Is(err, drivebay.ErrRefused) {
							t.Errorf("grown: %v", err)
						}
						_, err = s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID})
						t.Log(err)
					}
					refused(way)
					if on := s.of(v).Location.Drives[0]; way == "the other one is used" {
						s.inject(on, "vanish")
						time.Sleep(time.Minute)
						s.must(s.e.ForgetVolume(s.Context(), v.ID))
						time.Sleep(11 * time.Minute)
						s.must(s.stage(v), s.unstage(v))
						s.inject(on, "return")
						time.Sleep(11 * time.Minute)
						s.must(s.stage(v), s.unstage(v))
						if is := s.of(v).Location.Drives; is[0] == on {
							t.Errorf("it is on %v again", is)
						}
						return
					}
					s.must(s.e.ClearVolume(s.Context(), v.ID), s.stage(v), s.unstage(v))
				})
			})
		}
	}
}

// TestUndecidedIsNotCopied: while an operator has to decide which of two volumes with one id is the volume, neither a
// snapshot nor a clone is made of it: it could be that of the other one.
func TestUndecidedIsNotCopied(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on thin"])
		records, err := s.st.Volumes()
		s.must(err)
		r := records[v.ID]
		r.Volume, err = r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: "another drive has one as well", Since: s.sim.Now(), Retry: drivebay.RetryOperator})
		s.must(err)
		s.stop()
		s.stop = nil
		s.must(s.st.PutVolume(r))
		s.start()
		time.Sleep(3 * time.Minute)
		clone := requests()["ext4 on thin"]
		clone.Name, clone.Size.Required, clone.Source = "clone", v.Size, drivebay.Source{Volume: v.ID}
		copies := map[string]func() error{
			"snapshot": func() error { _, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID); return err },
			"clone":    func() error { _, err := s.e.CreateVolume(s.Context(), clone); return err },
		}
		for name, copied := range copies {
			if err := copied(); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "volume clear") {
				s.Errorf("%s: %v", name, err)
			}
		}
		s.must(s.e.ClearVolume(s.Context(), v.ID))
		for _, copied := range copies {
			s.must(copied())
		}
	})
}
