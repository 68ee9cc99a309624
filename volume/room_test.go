package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRoom: the answer names the volume that really moves so that another one can grow, and the drive
// that has room for a volume that leaves; to ask changes nothing.
func TestRoom(t *testing.T) {
	t.Parallel()
	for name, c := range roomCases {
		t.Run(name, func(t *testing.T) {
			onMachine(t, c.spec(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				a, b := c.prep(s, roomRequests()["block"])
				if c.used {
					s.must(s.stage(a, with(rightKey)), s.publish(a, "pod"))
				}
				seq := s.e.Volumes().Seq
				grow, err := s.e.Room(s.Context(), a.ID, drivebay.RoomQuery{Size: c.size})
				if err != nil || grow.Against != "" {
					s.Fatalf("room to grow: %+v, %v", grow, err)
				}
				tooMuch, err := s.e.Room(s.Context(), a.ID, drivebay.RoomQuery{Size: 1 << 40})
				_, _, refusal := s.e.ExpandVolume(s.Context(), a.ID, drivebay.SizeRange{Required: 1 << 40})
				if want := "expand volume " + a.ID + ": " + tooMuch.Against; err != nil || refusal == nil || refusal.Error() != want {
					s.Errorf("too much: %+v, %v; the call: %v", tooMuch, err, refusal)
				}
				leave, err := s.e.Room(s.Context(), b.ID, drivebay.RoomQuery{Leave: b.Location.Drives[0]})
				if err != nil || (leave.Target != "") != (c.drives == 2) || (leave.Against != "") != (c.drives == 1) || leave.Target == b.Location.Drives[0] {
					s.Errorf("room to leave: %+v, %v", leave, err)
				}
				if _, err := s.e.Room(s.Context(), b.ID, drivebay.RoomQuery{Leave: "other"}); !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("a drive that the volume is not on: %v", err)
				}
				if now := s.e.Volumes().Seq; now != seq {
					s.Errorf("something changed: set %d, before %d", now, seq)
				}
				is := s.grows(a, c.size)
				for _, v := range []drivebay.Volume{a, b} {
					now := is
					if v.ID == b.ID {
						now = s.of(b).Volume
					}
					if moved := now.Location.Partition != v.Location.Partition; moved != (grow.Moves == v.ID) {
						s.Errorf("volume %s moved: %v; the answer was %+v", v.Name, moved, grow)
					}
				}
			})
		})
	}
}
