package volume_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// strangers are what others may have written: a kind of the simulated machine's,
// or bytes at an offset.
var strangers = map[string][]struct {
	at   int64
	text string
}{
	"ext4": nil, "xfs": nil, "btrfs": nil, "swap": nil, "lvm": nil, "md": nil, "luks": nil, "gpt": nil, "mbr": nil, "bluestore": nil,
	"zfs":         {{128<<10 + 8, "\x00"}, {131072 + 128<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"}},
	"bcache":      {{4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"}},
	"iso9660":     {{0x8001, "CD001"}},
	"one byte":    {{777777, "x"}},
	"backup GPT":  {{-512, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00"}},
	"PMBR only":   {{446, "\x00\x00\x02\x00\xee\xff\xff\xff\x01\x00\x00\x00\xff\xff\xff\xff"}, {510, "\x55\xaa"}},
	"raid at end": {{-1024, "Intel Raid ISM Cfg Sig. "}},
}

// TestForeign writes what is a stranger's on a drive that was blank when it was
// looked at. Whatever we believe, it is read again before the first write: the
// volume is refused, and not a byte changes.
func TestForeign(t *testing.T) {
	t.Parallel()
	for name, marks := range strangers {
		for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive} {
			t.Run(name+" "+string(b), func(t *testing.T) {
				group := hostsim.Group{Count: 1, Kind: hostsim.KindSATASSD, Serial: "SSD{n}", Size: "8GB"}
				spec := hostsim.Spec{Drives: []hostsim.Group{group}}
				if marks == nil {
					group.Content, group.Count = name, 1
					spec.Drives = append(spec.Drives, group)
				}
				onMachine(t, spec, volume.Options{}, func(s *stand) { s.isRefused(name, b) })
			})
		}
	}
}

// isRefused writes a stranger's content of some kind, and has a volume made of the drive.
func (s *stand) isRefused(kind string, b drivebay.Backing) {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		if (d.Claim != nil) != (d.Serial == "SSD0001") {
			s.Fatalf("drive %s with %v is claimed: %v", d.Serial, d.Content.Kind, d.Claim)
		}
	}
	s.scribble(kind)
	before := s.sums()
	_, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: "v", Class: drivebay.Class{Backing: b, Wipe: drivebay.WipeZero, FSType: "ext4"}})
	if !errors.Is(err, drivebay.ErrRefused) {
		s.Errorf("%s: %v", b, err)
	}
	if after := s.sums(); !maps.Equal(before, after) {
		s.Error("bytes have changed")
	}
	if n := len(s.e.Volumes().Volumes); n != 0 {
		s.Errorf("%d volumes are remembered", n)
	}
}

// scribble makes the blank drive a stranger's, unseen by anybody.
func (s *stand) scribble(kind string) {
	s.Helper()
	blank, _ := s.mgr.Snapshot().Find("SSD0001")
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+blank.Name, false)
	if err != nil {
		s.Fatal(err)
	}
	defer disk.Close()
	write := func(b []byte, at int64) {
		if at < 0 {
			at += int64(disk.Size())
		}
		if _, err := disk.WriteAt(b, at); err != nil {
			s.Fatal(err)
		}
	}
	for _, m := range strangers[kind] {
		write([]byte(m.text), m.at)
	}
	if strangers[kind] != nil {
		return
	}
	theirs, _ := s.mgr.Snapshot().Find("SSD0002")
	from, err := s.sim.OpenDrive(s.Context(), "/dev/"+theirs.Name)
	if err != nil {
		s.Fatal(err)
	}
	defer from.Close()
	b := make([]byte, 2<<20)
	for _, at := range []int64{0, int64(theirs.Size) - int64(len(b))} {
		if _, err := from.ReadAt(b, at); err != nil {
			s.Fatal(err)
		}
		write(b, at)
	}
}

// TestUnwilling are drives that stopped answering after they were looked at.
func TestUnwilling(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]error{"hang": drivebay.ErrTimeout, "eio": drivebay.ErrRefused, "offline": drivebay.ErrNoSpace, "permission": drivebay.ErrPermission, "vanish": drivebay.ErrNoSpace} {
		t.Run(fault, func(t *testing.T) {
			spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSASHDD, Serial: "SSD{n}", Size: "8GB"}}}
			onMachine(t, spec, volume.Options{}, func(s *stand) {
				if err := s.sim.Inject(hostsim.Fault{Drive: "SSD0001", Fault: fault}); err != nil {
					s.Fatal(err)
				}
				_, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: "v", Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}})
				if !errors.Is(err, want) {
					s.Errorf("%v, want %v", err, want)
				}
				if n := len(s.e.Volumes().Volumes); n != 0 {
					s.Errorf("%d volumes are remembered", n)
				}
				if err := s.sim.Inject(hostsim.Fault{Drive: "SSD0001", Fault: "heal"}); err != nil {
					s.Fatal(err)
				}
				if fault != "vanish" {
					s.blank()
				}
			})
		})
	}
}
