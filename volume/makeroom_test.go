package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// nvme are some NVMe drives.
func nvme(count int, size string) hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: count, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: size}}}
}

// noisy makes a volume with noise in it.
func (s *stand) noisy(name string, r drivebay.VolumeRequest, size uint64) drivebay.Volume {
	s.Helper()
	r.Size.Required = size
	v := s.make(name, r)
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{byte(len(name)), name[0]})
	d, start, _ := s.span(v)
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
	s.must(err)
	defer disk.Close()
	for _, at := range []uint64{20 << 20, 33<<20 + 512, size - 1<<20} {
		random.Read(noise)
		_, err := disk.WriteAt(noise, int64(start+at))
		s.must(err)
	}
	return v
}

// litter writes old data into what is free of the drives with volumes, as volumes leave it
// that are not wiped.
func (s *stand) litter() {
	s.Helper()
	old := bytes.Repeat([]byte("old data"), 512)
	for _, d := range s.mgr.Snapshot().Drives {
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
		s.must(err)
		table, err := gpt.Read(disk)
		for at := uint64(3 << 20); err == nil && at < d.Size-3<<20; at += 7 << 20 {
			if !slices.ContainsFunc(table.Partitions, func(p gpt.Partition) bool { return at+uint64(len(old)) > p.Start && at < p.Start+p.Size }) {
				_, err := disk.WriteAt(old, int64(at))
				s.must(err)
			}
		}
		s.must(disk.Close())
	}
}

// span is where the partition of a volume is on its drive.
func (s *stand) span(v drivebay.Volume) (drive drivebay.Drive, at, size uint64) {
	s.Helper()
	drive = s.driveOf(v)
	s.onDrive(drive.Name, func(_ host.Disk, t *gpt.Table) {
		p, there := t.Find(v.Location.Partition)
		if !there {
			s.Fatalf("volume %s: no partition %s in %+v", v.Name, v.Location.Partition, t.Partitions)
		}
		at, size = p.Start, p.Size
	})
	return drive, at, size
}

// beginning is a sum of the first bytes of a volume's partition.
func (s *stand) beginning(v drivebay.Volume, n uint64) (sum uint64) {
	s.Helper()
	d, at, _ := s.span(v)
	s.read(d, func(r io.ReaderAt) {
		var h maphash.Hash
		h.SetSeed(seed)
		if _, err := io.Copy(&h, io.NewSectionReader(r, int64(at), int64(n))); err != nil {
			s.Fatal(err)
		}
		sum = h.Sum64()
	})
	return sum
}

// nothingIn wants zeros in a range of a drive.
func (s *stand) nothingIn(what string, d drivebay.Drive, at, size uint64) {
	s.Helper()
	s.read(d, func(r io.ReaderAt) {
		b := make([]byte, 1<<20)
		for ; size >= 1<<20; at, size = at+1<<20, size-1<<20 {
			if _, err := r.ReadAt(b, int64(at)); err != nil || !zero(b) {
				s.Errorf("%s: something is written at %d MiB of drive %s: %v", what, at>>20, d.Name, err)
				return
			}
		}
	})
}

// grows asks for a growth until it is there.
func (s *stand) grows(v drivebay.Volume, size uint64) drivebay.Volume {
	s.Helper()
	for range 100 {
		_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size})
		if err == nil {
			s.until("at rest", func() bool { return s.allRest() })
			return s.of(v).Volume
		}
		if !errors.Is(err, drivebay.ErrPending) {
			s.Fatalf("volume %s: %v", v.Name, err)
		}
		time.Sleep(3 * time.Second)
	}
	s.Fatalf("volume %s does not grow: %+v", v.Name, s.of(v))
	return v
}

func (s *stand) allRest() bool {
	for _, v := range s.e.Volumes().Volumes {
		if v.Work != "" {
			return false
		}
	}
	return true
}

// roomCase is a partition without room behind it, and what moves so that it grows.
type roomCase struct {
	drives int  // one of 1 GB, or two of 400 MB
	used   bool // it is staged, so that the one behind it has to move
	size   uint64
}

var roomCases = map[string]roomCase{
	"it moves on its drive":                    {drives: 1, size: 400 << 20},
	"it moves to another drive":                {drives: 2, size: 300 << 20},
	"the one behind it moves on the drive":     {drives: 1, used: true, size: 400 << 20},
	"the one behind it moves to another drive": {drives: 2, used: true, size: 300 << 20},
	"not in use, the one behind it moves":      {drives: 1, size: 700 << 20},
}

func (c roomCase) spec() hostsim.Spec {
	return nvme(c.drives, map[int]string{1: "1GB", 2: "400MB"}[c.drives])
}

// prep makes a and b on one drive, b right behind the room that a has. Where there are two
// drives, there is no room for another place on the first one.
func (c roomCase) prep(s *stand, r drivebay.VolumeRequest) (a, b drivebay.Volume) {
	s.Helper()
	if c.drives == 1 {
		return s.besides(r, 64<<20)
	}
	return s.besides(r, 260<<20)
}

// besides makes a of 64 MiB and b on one drive, and nothing on any other.
func (s *stand) besides(r drivebay.VolumeRequest, large uint64) (a, b drivebay.Volume) {
	s.Helper()
	a = s.noisy("a", r, 64<<20)
	var others []drivebay.Volume
	for i := range len(s.mgr.Snapshot().Drives) - 1 { // so that b comes beside a
		f := requests()["a partition"]
		f.Size.Required = 370 << 20
		others = append(others, s.make(fmt.Sprint("filler", i), f))
	}
	b = s.noisy("b", r, large)
	if a.Location.Drives[0] != b.Location.Drives[0] {
		s.Fatal("a and b are on two drives")
	}
	for _, f := range others {
		s.must(s.e.DeleteVolume(s.Context(), f.ID))
	}
	return a, b
}

// run does one case; after is called between the request and its end, and disturbs it.
func (c roomCase) run(t *testing.T, r drivebay.VolumeRequest, k *killer, disturb func(s *stand, a, b drivebay.Volume)) {
	t.Helper()
	opt := volume.Options{Headers: t.TempDir()}
	if k != nil {
		opt.After = k.step
	}
	onMachine(t, c.spec(), opt, func(s *stand) {
		a, b := c.prep(s, r)
		s.litter()
		sumA, sumB := s.beginning(a, a.Size), s.beginning(b, b.Size)
		if c.used {
			s.must(s.stage(a, with(rightKey)), s.publish(a, "pod"))
		}
		_, startA, sizeA := s.span(a)
		_, startB, sizeB := s.span(b)
		drive := s.driveOf(a)
		if k != nil {
			k.anew(0)
		}
		_, _, err := s.e.ExpandVolume(s.Context(), a.ID, drivebay.SizeRange{Required: c.size})
		if !errors.Is(err, drivebay.ErrPending) {
			s.Fatalf("asked for at first: %v", err)
		}
		if disturb != nil {
			disturb(s, a, b)
		}
		if s.Failed() {
			return
		}
		is := s.grows(a, c.size)
		isB := s.of(b).Volume
		if is.Size != c.size || isB.Size != b.Size || s.beginning(is, a.Size) != sumA || s.beginning(isB, b.Size) != sumB {
			s.Fatalf("a: %+v, same %v; b: %+v, same %v", is, s.beginning(is, a.Size) == sumA, isB, s.beginning(isB, b.Size) == sumB)
		}
		movedA, movedB := is.Location.Partition != a.Location.Partition, isB.Location.Partition != b.Location.Partition
		if movedA == movedB || c.used && movedA {
			s.Errorf("a moved: %v, b moved: %v", movedA, movedB)
		}
		if movedA {
			s.nothingIn("where a was", drive, startA, sizeA)
		} else {
			s.nothingIn("where b was", drive, startB, sizeB)
		}
		d, at, size := s.span(is)
		if r.Block && is.LUKSUUID == "" {
			s.nothingIn("what a has more", d, at+a.Size, size-a.Size)
		}
		if told := strings.Join(s.events(drivebay.EventVolumeMoved), "\n"); k == nil && (strings.Count(told, "volume \"") != 1+strings.Count(told, "before it") || movedB && !strings.Contains(told, `volume "a" before it needs the room`)) {
			s.Errorf("told: %q", told)
		}
		if !c.used {
			s.must(s.stage(is, with(rightKey)), s.publish(is, "pod"))
		}
		if d, err := s.e.ExpandNode(s.Context(), a.ID, target(a, "pod"), drivebay.SizeRange{}, secrets(rightKey)); err != nil {
			s.Errorf("the filesystem: %v, %v", d, err)
		}
		s.must(s.stage(isB, with(rightKey)), s.unstage(isB), s.unpublish(is, "pod"), s.unstage(is))
		for _, v := range []drivebay.Volume{is, isB} {
			if now := s.of(v); now.Condition.Abnormal() || now.CSIStatus != drivebay.CSICreated {
				s.Errorf("in the end: %v, %v", now.CSIStatus, now.Condition)
			}
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
		}
		s.blank()
	})
}

func roomRequests() map[string]drivebay.VolumeRequest {
	return map[string]drivebay.VolumeRequest{"ext4": requests()["ext4 on a partition"], "block": requests()["a partition"],
		"encrypted": encryptedRequests()["ext4 on a partition"], "encrypted block": encryptedRequests()["a partition"]}
}

// TestMakeRoom: a partition that has no room behind it grows by a move of its own, or of
// the one behind it, and both keep what is in them.
func TestMakeRoom(t *testing.T) {
	t.Parallel()
	for i, name := range slices.Sorted(maps.Keys(roomCases)) {
		for j, what := range slices.Sorted(maps.Keys(roomRequests())) {
			c, r := roomCases[name], roomRequests()[what]
			if (i+j)%everyNth != 0 {
				continue
			}
			t.Run(name+"/"+what, func(t *testing.T) { c.run(t, r, nil, nil) })
		}
	}
}

// TestMakeRoomKilled cuts that short after each of its steps.
func TestMakeRoomKilled(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"it moves on its drive": "encrypted", "it moves to another drive": "block",
		"the one behind it moves on the drive": "block", "the one behind it moves to another drive": "encrypted"} {
		c, r := roomCases[name], roomRequests()[what]
		t.Run(name, func(t *testing.T) {
			k := &killer{}
			var steps []string
			c.run(t, r, k, func(s *stand, a, _ drivebay.Volume) { s.grows(a, c.size); steps = k.steps() })
			if t.Logf("steps: %q", steps); len(steps) < 10 {
				t.Fatalf("only %d steps", len(steps))
			}
			for n := 1; n <= len(steps) && !t.Failed(); n += everyNth {
				c.run(t, r, k, func(s *stand, _, _ drivebay.Volume) {
					k.arm(n)
					s.until("killed", k.dead)
					k.arm(0)
					s.start()
				})
				if t.Failed() {
					t.Logf("killed after step %d, %q", n, steps[n-1])
				}
			}
		})
	}
}

// TestMakeRoomBetween asks for a growth after each step of what gives it the room: the move, or the removal,
// of the volume behind. The old partition leaves the kernel before it leaves the table, and its range is
// not free in between.
func TestMakeRoomBetween(t *testing.T) {
	t.Parallel()
	c := roomCases["the one behind it moves on the drive"]
	for name, begin := range map[string]func(s *stand, a, b drivebay.Volume) error{
		"move":    func(s *stand, a, _ drivebay.Volume) error { return s.askRoom(a) },
		"removal": func(s *stand, _, b drivebay.Volume) error { return s.e.DeleteVolume(s.Context(), b.ID) },
	} {
		t.Run(name, func(t *testing.T) {
			var asks sync.Mutex // a call has steps of its own: not asked after
			var ask func() error
			asked := map[string]error{}
			opt := volume.Options{Headers: t.TempDir(), After: func(_, step string) error {
				if asks.TryLock() {
					defer asks.Unlock()
					asked[step] = errors.Join(asked[step], ask())
				}
				return nil
			}}
			asks.Lock()
			onMachine(t, c.spec(), opt, func(s *stand) {
				a, b := c.prep(s, requests()["a partition"])
				s.must(s.stage(a), s.publish(a, "pod"))
				ask = func() error { return s.askRoom(a) }
				asks.Unlock()
				if err := begin(s, a, b); err != nil && !errors.Is(err, drivebay.ErrPending) {
					s.Fatal(err)
				}
				s.until("at rest", s.allRest)
				asks.Lock()
				if a = s.grows(a, c.size); a.CSIStatus == drivebay.CSIFailed {
					s.Errorf("it is %+v", a)
				}
				for step, err := range asked {
					if err != nil && !errors.Is(err, drivebay.ErrPending) {
						s.Errorf("asked for after step %q: %v", step, err)
					}
				}
				if steps := slices.Sorted(maps.Keys(asked)); len(steps) < 3 {
					s.Errorf("asked after these steps only: %q", steps)
				}
			})
		})
	}
}

// TestMakeRoomRefused: what cannot be had is OUT_OF_RANGE with the reason, and nothing has
// changed.
func TestMakeRoomRefused(t *testing.T) {
	t.Parallel()
	raw := requests()["a partition"]
	use := func(s *stand, all ...drivebay.Volume) {
		for _, v := range all {
			s.must(s.stage(v), s.publish(v, "pod"))
		}
	}
	for name, c := range map[string]struct {
		drives int
		size   uint64
		prep   func(s *stand) (a drivebay.Volume)
		want   []string
	}{
		"both are in use": {drives: 1, size: 400 << 20, prep: func(s *stand) drivebay.Volume {
			a, b := s.besides(raw, 64<<20)
			use(s, a, b)
			return a
		}, want: []string{"it can have 256 MiB where it is, 400 MiB are requested", "volume a is in use (published at", "behind it volume b is in use (published at"}},
		"no room for the one behind it": {drives: 1, size: 900 << 20, prep: func(s *stand) drivebay.Volume {
			a, _ := s.besides(raw, 64<<20)
			use(s, a)
			return a
		}, want: []string{"volume a is in use", "behind it no drive that volume b may move to has 64 MiB free in one piece"}},
		"two are behind it": {drives: 1, size: 700 << 20, prep: func(s *stand) drivebay.Volume {
			a, _ := s.besides(raw, 64<<20)
			s.noisy("c", raw, 64<<20)
			use(s, a)
			return a
		}, want: []string{"MiB without volume b behind it"}},
		"at the end of its drive": {drives: 1, size: 990 << 20, prep: func(s *stand) drivebay.Volume { return s.noisy("a", raw, 64<<20) },
			want: []string{"no drive that volume a may move to has 990 MiB free in one piece, and its drive ends behind it"}},
		"a physical volume behind it": {drives: 1, size: 400 << 20, prep: func(s *stand) drivebay.Volume {
			a := s.noisy("a", raw, 64<<20)
			r := requests()["a linear volume"]
			r.Size.Required = 64 << 20
			s.make("l", r)
			return a
		}, want: []string{"(drivebay-pv-", "lies behind it"}},
		"the other drive takes nothing": {drives: 2, size: 300 << 20, prep: func(s *stand) drivebay.Volume {
			a, _ := s.besides(raw, 260<<20)
			s.must(s.mgr.Cordon(s.Context(), s.other(a).ID, true))
			time.Sleep(5 * time.Second)
			return a
		}, want: []string{"no drive that volume a may move to", "no drive that volume b may move to"}},
		"a whole drive": {drives: 2, size: 5 << 30, prep: func(s *stand) drivebay.Volume { return s.noisy("a", requests()["a drive"], 64<<20) },
			want: []string{"it has all of drive"}},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, roomCase{drives: c.drives}.spec(), volume.Options{}, func(s *stand) {
				a := c.prep(s)
				before := s.e.Volumes().Volumes
				_, _, err := s.e.ExpandVolume(s.Context(), a.ID, drivebay.SizeRange{Required: c.size})
				if !errors.Is(err, drivebay.ErrRange) || errors.Is(err, drivebay.ErrNoSpace) {
					s.Fatalf("it is %v", err)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						s.Errorf("%q is not in: %v", want, err)
					}
				}
				time.Sleep(time.Minute)
				for _, v := range before {
					if is := s.of(v.Volume); is.Work != "" || is.Size != v.Size || is.Location.Partition != v.Location.Partition {
						s.Errorf("volume %s is %+v, %q", v.Name, is.Volume, is.Work)
					}
				}
			})
		})
	}
}

// askRoom asks for more than a volume can have where it is.
func (s *stand) askRoom(v drivebay.Volume) error {
	_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 400 << 20})
	return err
}

// roomDisturbances are what comes between the beginning of a move for room and its end.
var roomDisturbances = map[string]struct {
	used bool // volume a is in use
	do   func(s *stand, a, b drivebay.Volume)
}{
	"the one behind it is staged": {true, func(s *stand, a, b drivebay.Volume) {
		s.must(s.stage(b))
		s.until("taken back", s.allRest)
		if err := s.askRoom(a); !errors.Is(err, drivebay.ErrRange) || !strings.Contains(err.Error(), "volume b is in use (staged at") {
			s.Errorf("asked for again: %v", err)
		}
		if is := s.of(b); is.Location.Partition != b.Location.Partition {
			s.Errorf("b is at %+v", is.Location)
		}
		s.must(s.unstage(b))
	}},
	"it is staged itself": {false, func(s *stand, a, b drivebay.Volume) {
		s.must(s.stage(a))
		s.until("taken back", s.allRest)
		if is := s.grows(a, 400<<20); is.Location.Partition != a.Location.Partition { // the one behind it moves
			s.Errorf("a is at %+v", is.Location)
		}
		s.must(s.unstage(a))
	}},
	"the one behind it is removed": {true, func(s *stand, a, b drivebay.Volume) {
		s.must(s.e.DeleteVolume(s.Context(), b.ID), s.askRoom(a))
	}},
	"it is removed": {true, func(s *stand, a, b drivebay.Volume) {
		s.must(s.unpublish(a, "pod"), s.unstage(a), s.e.DeleteVolume(s.Context(), a.ID))
		s.until("taken back", s.allRest)
		if is := s.of(b); is.Location.Partition != b.Location.Partition {
			s.Errorf("b is at %+v", is.Location)
		}
	}},
	"its drive has to leave": {false, func(s *stand, a, b drivebay.Volume) {
		s.lead(a, drivebay.LeaveRelease)
		time.Sleep(10 * time.Minute)
		s.lead(a, drivebay.LeaveCancel)
		time.Sleep(time.Minute)
	}},
	"more is wanted": {false, func(s *stand, a, b drivebay.Volume) {
		if is := s.grows(a, 500<<20); is.Size != 500<<20 {
			s.Errorf("a is %+v", is)
		}
	}},
	"started again": {true, func(s *stand, a, b drivebay.Volume) {
		s.start()
		s.until("grown", func() bool { return s.of(a).Size == 400<<20 }) // without a call
	}},
	"it cannot be read": {true, func(s *stand, a, b drivebay.Volume) {
		s.badSectors(b, 50<<20, 1024)
		s.until("taken back", s.allRest)
		if err := s.askRoom(a); !errors.Is(err, drivebay.ErrRange) || !strings.Contains(err.Error(), "volume b could not be moved") || !strings.Contains(err.Error(), "cannot read 1024 bytes") {
			s.Errorf("asked for again: %v", err)
		}
		if is := s.of(b); is.Location.Partition != b.Location.Partition || is.Usage != drivebay.VolumeInUse || is.Lost != nil {
			s.Errorf("b is %+v", is.Volume)
		}
	}},
}

// TestMakeRoomCalledOff: a call that needs the volume that moves has it at once, and the
// growth is answered by what there is then.
func TestMakeRoomCalledOff(t *testing.T) {
	t.Parallel()
	for name, c := range roomDisturbances {
		t.Run(name, func(t *testing.T) {
			onMachine(t, nvme(1, "1GB"), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
				a, b := s.besides(requests()["a partition"], 64<<20)
				sumA, sumB := s.beginning(a, a.Size), s.beginning(b, b.Size)
				if c.used {
					s.must(s.stage(a), s.publish(a, "pod"))
				}
				if err := s.askRoom(a); !errors.Is(err, drivebay.ErrPending) {
					s.Fatal(err)
				}
				moves := b
				if !c.used {
					moves = a
				}
				s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(moves.ID); return ok && done > 20<<20 })
				began := time.Now()
				if err := s.askRoom(a); !errors.Is(err, drivebay.ErrPending) || time.Since(began) > time.Second {
					s.Errorf("asked for in between: %v", err)
				}
				if done, _, ok := s.e.CopyProgress(moves.ID); !ok || done < 20<<20 {
					s.Error("asking again has ended the copy")
				}
				c.do(s, a, b)
				s.until("at rest", s.allRest)
				if is, there := s.e.Volumes().Get(a.ID); there {
					if s.beginning(is.Volume, a.Size) != sumA {
						s.Error("a is another one now")
					}
					if name != "it cannot be read" { // that drive takes nothing new
						s.grows(a, 400<<20)
					}
					if is := s.of(a).Volume; s.beginning(is, a.Size) != sumA {
						s.Error("a is another one now")
					}
				}
				if is, there := s.e.Volumes().Get(b.ID); there && name != "it cannot be read" && s.beginning(is.Volume, b.Size) != sumB {
					s.Error("b is another one now")
				}
				for _, v := range s.e.Volumes().Volumes {
					if len(v.Publications) > 0 {
						s.must(s.unpublish(v.Volume, "pod"), s.unstage(v.Volume))
					}
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
				}
				time.Sleep(time.Minute)
				s.blank()
			})
		})
	}
}

// TestMakeRoomLost cuts a move within a drive short after each of its steps, and loses all
// records: both volumes are found again with what was in them, and no half copy is taken
// for one.
func TestMakeRoomLost(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"it moves on its drive": "block", "the one behind it moves on the drive": "encrypted"} {
		t.Run(name, func(t *testing.T) {
			for n, more := 1, true; more && !t.Failed(); n += everyNth {
				more = roomCases[name].lost(t, roomRequests()[what], n)
			}
		})
	}
}

// partprobe tells the kernel what the table of a drive says.
func (s *stand) partprobe(d drivebay.Drive) {
	s.Helper()
	s.onDrive(d.Name, func(disk host.Disk, t *gpt.Table) {
		for _, p := range t.Partitions {
			if _, err := s.sim.ReadFile(fmt.Sprintf("sys/block/%s/%sp%d/start", d.Name, d.Name, p.Number)); err != nil {
				s.must(disk.AddPartition(p.Number, p.Start, p.Size))
			} else {
				s.must(disk.ResizePartition(p.Number, p.Start, p.Size))
			}
		}
	})
}

func (c roomCase) lost(t *testing.T, r drivebay.VolumeRequest, n int) (more bool) {
	k := &killer{}
	onMachine(t, c.spec(), volume.Options{Headers: t.TempDir(), After: k.step}, func(s *stand) {
		a, b := c.prep(s, r)
		sums := map[string]uint64{a.ID: s.beginning(a, a.Size), b.ID: s.beginning(b, b.Size)}
		if c.used {
			s.must(s.stage(a, with(rightKey)), s.unstage(a), s.stage(a, with(rightKey)))
		}
		k.anew(n)
		if _, _, err := s.e.ExpandVolume(s.Context(), a.ID, drivebay.SizeRange{Required: c.size}); !errors.Is(err, drivebay.ErrPending) {
			s.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		more = k.dead()
		steps := k.steps()
		k.arm(0)
		if c.used {
			s.must(s.unstage(a))
		}
		s.forget()
		all := s.e.Volumes().Volumes
		if last := steps[len(steps)-1]; len(all) == 0 && (last == "name" || last == "table") { // the kernel has not this partition yet: not absent, but not known
			if err := s.e.Missing(a.ID); !errors.Is(err, drivebay.ErrUnavailable) {
				s.Errorf("not known yet: %v", err)
			}
			s.partprobe(s.driveOf(a))
			time.Sleep(15 * time.Minute)
			all = s.e.Volumes().Volumes
		}
		if len(all) != 2 {
			s.Fatalf("after %q: found: %+v", steps, all)
		}
		for _, v := range all {
			size := a.Size
			if v.Mode != a.Mode || v.LUKSUUID == "" != (r.Class.Encryption == "") || s.beginning(v.Volume, size) != sums[v.ID] {
				s.Fatalf("after %q: found: %+v", steps, v.Volume)
			}
			err := s.stage(v.Volume, with(rightKey))
			if errors.Is(err, drivebay.ErrRefused) && strings.Contains(err.Error(), "uses the copy on drive") { // an operator decides
				s.must(s.e.ClearVolume(s.Context(), v.ID))
				err = s.stage(v.Volume, with(rightKey))
			}
			if err != nil {
				s.Fatalf("after %q: %v", steps, err)
			}
			s.must(s.unstage(v.Volume))
		}
	})
	return more
}
