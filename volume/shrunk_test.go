package volume_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// resize gives a drive another size.
func (s *stand) resize(id string, size uint64) {
	s.Helper()
	serial := id
	if d, ok := s.mgr.Snapshot().Find(id); ok {
		serial = d.Serial
	}
	s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "resize", Args: map[string]string{"size": fmt.Sprintf("%dB", size)}}))
}

// restartAll starts the whole daemon anew, with the records or without them.
func (s *stand) restartAll(lost bool) {
	s.Helper()
	s.restart(func() {
		if lost {
			s.st = store.Memory()
		}
	})
	time.Sleep(30 * time.Second)
}

// shrank wants a drive and the volume on it to say that the drive shrank, and neither to
// be used for anything.
func (s *stand) shrank(v drivebay.Volume, id string) {
	s.Helper()
	d, _ := s.mgr.Snapshot().Find(id)
	if d.SizeIssue == "" || d.Health == drivebay.HealthGood || len(d.Refusals()) == 0 || d.Content.Kind == drivebay.ContentBlank {
		s.Errorf("drive %s: %q, %v, %v %v, content %v", id, d.SizeIssue, d.Health, d.Findings, d.Refusals(), d.Content.Kind)
	}
	s.nothingNew(v)
	view, ok := s.e.Volumes().Get(v.ID)
	if !ok {
		return // the records are lost, and the kernel shows no partition of it
	}
	if len(severities(view.Condition, "DriveShrank")) != 1 || view.OperationalStatus == drivebay.Missing {
		s.Errorf("the volume is %v: %v", view.OperationalStatus, view.Condition)
	}
	s.nothingUndone(v)
}

// TestDriveShrank: a drive comes back with fewer bytes, or loses them while it is there;
// it is abnormal at once, nothing is written to it, and all is well when they are back.
func TestDriveShrank(t *testing.T) {
	t.Parallel()
	for _, b := range few(backings) {
		for _, way := range []string{"returns", "while it is there", "while the daemon is down", "and the records are lost", "by one MiB"} {
			t.Run(string(b)+" "+way, func(t *testing.T) {
				onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
					v := s.make("precious", rawVolume(b))
					s.mark(v)
					d := s.driveOf(v)
					before := s.bytesOf(d.Name)
					size := d.Size - 500<<20
					switch way {
					case "returns":
						s.inject(d.ID, "vanish")
						time.Sleep(time.Minute)
						s.resize(d.ID, size)
						s.inject(d.ID, "return")
					case "while it is there":
						s.resize(d.ID, size)
					case "by one MiB":
						s.resize(d.ID, d.Size-1<<20)
					default:
						s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "vanish"}))
						s.restart(func() {
							s.resize(d.Serial, size)
							s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "return"}))
							if way == "and the records are lost" {
								s.st = store.Memory()
							}
						})
					}
					time.Sleep(20 * time.Second)
					s.shrank(v, d.ID)
					time.Sleep(20 * time.Minute)
					s.shrank(v, d.ID)
					s.resize(d.ID, d.Size)
					s.inject(d.ID, "vanish")
					s.inject(d.ID, "return")
					time.Sleep(15 * time.Minute)
					if after := s.bytesOf(s.driveOf(v).Name); !maps.Equal(after, before) {
						t.Error("the drive was written to")
					}
					if d, _ := s.mgr.Snapshot().Find(d.ID); d.SizeIssue != "" || d.Health != drivebay.HealthGood {
						t.Errorf("with its size back the drive is %v: %q, %v", d.Health, d.SizeIssue, d.Findings)
					}
					s.must(s.stage(v))
				})
			})
		}
	}
}

// TestShrankInUse: what is in use on a drive that shrank goes on and can be let go of;
// nothing new begins.
func TestShrankInUse(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		t.Run(string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
				v := s.make("precious", rawVolume(b))
				s.must(s.stage(v), s.publish(v, "pod"))
				d := s.driveOf(v)
				s.resize(d.ID, d.Size-500<<20)
				time.Sleep(20 * time.Second)
				s.must(s.publish(v, "pod"))
				if err := s.publish(v, "pod2"); !errors.Is(err, drivebay.ErrRefused) {
					t.Errorf("published once more: %v", err)
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				time.Sleep(time.Hour) // its table was looked at, and a copy of it is out of reach
				if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "the drive shrank") {
					t.Errorf("staged again: %v", err)
				}
			})
		})
	}
}

// TestDriveGrew: a drive with more bytes than before is said and used.
func TestDriveGrew(t *testing.T) {
	t.Parallel()
	onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
		v := s.make("precious", rawVolume(drivebay.BackingPartition))
		d := s.driveOf(v)
		s.resize(d.ID, d.Size+1<<30)
		time.Sleep(20 * time.Minute)
		if d, _ := s.mgr.Snapshot().Find(d.ID); d.SizeIssue != "" || d.Health != drivebay.HealthGood || len(d.Refusals()) > 0 {
			t.Errorf("the drive is %v: %q, %v", d.Health, d.SizeIssue, d.Refusals())
		}
		if len(s.events(drivebay.EventResized)) != 1 {
			t.Errorf("it is said %v", s.events(drivebay.EventResized))
		}
		s.must(s.stage(v), s.unstage(v))
		s.make("another", rawVolume(drivebay.BackingPartition))
		s.resize(d.ID, d.Size) // the second table may reach beyond that
		time.Sleep(time.Minute)
		if d, _ := s.mgr.Snapshot().Find(d.ID); d.SizeIssue == "" {
			t.Error("a drive that grew and shrank is said to be well")
		}
	})
}

// TestBlankDriveShrank: a blank drive that shrank is neither blank nor free: what it held
// may be where it does not reach.
func TestBlankDriveShrank(t *testing.T) {
	t.Parallel()
	onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
		d := s.mgr.Snapshot().Drives[0]
		s.resize(d.ID, d.Size-500<<20)
		time.Sleep(20 * time.Second)
		s.shrank(drivebay.Volume{ID: "none"}, d.ID)
		s.restartAll(false)
		s.shrank(drivebay.Volume{ID: "none"}, d.ID)
	})
}

// TestCloneOnSmallerDrive: the table of a larger drive on a smaller one.
func TestCloneOnSmallerDrive(t *testing.T) {
	t.Parallel()
	spec := tinyDrives(1)
	spec.Drives = append(spec.Drives, hostsim.Group{Count: 1, Kind: hostsim.KindNVMe, Serial: "SMALL{n}", Size: "1500MB"})
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		big, small := s.mgr.Snapshot().Drives[0], s.mgr.Snapshot().Drives[1]
		if big.Size < small.Size {
			big, small = small, big
		}
		from, err := s.sim.OpenDisk(s.Context(), "/dev/"+big.Name, false)
		s.must(err)
		table, err := gpt.New(from)
		s.must(err)
		_, err = table.Add(64<<20, gpt.Align, "0fc63daf-8483-4772-8e79-3d69d8477de4", "11111111-2222-4333-8444-555555555555", "drivebay-foreign")
		s.must(err, table.Write(from))
		to, err := s.sim.OpenDisk(s.Context(), "/dev/"+small.Name, false)
		s.must(err)
		head := make([]byte, 1<<20)
		_, err = from.ReadAt(head, 0)
		s.must(err)
		_, err = to.WriteAt(head, 0)
		s.must(err, to.Close(), gptGone(from), from.Close())
		time.Sleep(20 * time.Minute)
		d, _ := s.mgr.Snapshot().Find(small.ID)
		if d.SizeIssue == "" || d.Health != drivebay.HealthBad || len(d.Refusals()) == 0 {
			t.Errorf("the drive is %v, %q, %v", d.Health, d.SizeIssue, d.Refusals())
		}
	})
}

// gptGone erases the table of a drive whose partitions the kernel does not know.
func gptGone(d gpt.Disk) error {
	t, err := gpt.Read(d)
	if err != nil {
		return err
	}
	t.Partitions = nil
	return errors.Join(t.Write(d), gpt.Erase(d))
}
