package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume"
)

// TestMovedByHand: an operator moves the volume group of a volume to a drive that the record does not
// name, with the commands of LVM: to a whole drive, or to a partition named like those of drivebay. The
// volume is reported, its data stay, and back on its drive it is as before.
func TestMovedByHand(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()["a linear volume"])
			s.must(s.stage(v))
			s.word(v, "mine")
			other, own := s.other(v), s.driveOf(v)
			from, onto := "/dev/"+firstPartition(&own), "/dev/"+other.Name
			if named {
				s.partitionForLVM(other)
				onto = "/dev/" + firstPartition(&other)
			}
			move := func(from, onto string) {
				s.must(s.byHand("vgextend", v.Location.VG, onto), s.byHand("pvmove", "--background", "--interval", "1", from, onto))
				time.Sleep(5 * time.Minute)
				s.must(s.byHand("vgreduce", v.Location.VG, from))
				time.Sleep(15 * time.Minute)
			}
			s.must(s.byHand("pvcreate", onto))
			move(from, onto)
			for _, staged := range []bool{true, false} {
				if !staged {
					s.must(s.unstage(v))
					time.Sleep(15 * time.Minute)
				}
				if is := s.of(v); is.Condition.Severity() != drivebay.SeverityInaccessible || !strings.Contains(reasons(is.Condition), "VolumeNotFound") {
					t.Errorf("named %v, staged %v: it says %q: %s", named, staged, reasons(is.Condition), is.Condition.Message())
				}
			}
			if err := s.stage(v); err == nil {
				t.Error("staged from a drive that its record does not name")
			}
			move(onto, from)
			if is := s.of(v); is.Condition.Abnormal() {
				t.Errorf("named %v, back: %s", named, is.Condition.Message())
			}
			s.must(s.stage(v))
			if got := s.word(v, ""); got != "mine" {
				t.Errorf("named %v: it reads %q", named, got)
			}
		})
	}
}

// byHand runs a command of LVM as an operator does.
func (s *stand) byHand(args ...string) error {
	_, err := s.sim.Run(s.Context(), append([]string{"lvm"}, args...)...)
	return err
}

// partitionForLVM gives a blank drive a partition like those that drivebay makes for LVM.
func (s *stand) partitionForLVM(d drivebay.Drive) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
	s.must(err)
	defer disk.Close()
	t, err := gpt.New(disk)
	s.must(err)
	p, err := t.Add(t.Largest(gpt.Align).Size, gpt.Align, "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e05", "11111111-2222-4333-8444-555555555555", drivebay.PVPrefix+"abcdefgh")
	s.must(err, t.Write(disk), disk.AddPartition(p.Number, p.Start, p.Size))
}
