package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume"
)

// TestDeletedSnapshotNotSeen: a snapshot that LVM does not report because it cannot read the physical volume is not deleted.
func TestDeletedSnapshotNotSeen(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"label", "eio", "vanish"} {
		t.Run(how, func(t *testing.T) {
			onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
				v := s.make("v", rawVolume(drivebay.BackingThin))
				snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
				d := s.driveOf(v)
				hide := func() { s.inject(d.ID, how) }
				show := func() { s.inject(d.ID, map[string]string{"eio": "heal", "vanish": "return"}[how]) }
				if how == "label" {
					hide = func() { s.flip(d.Name+"p1", 512+40, 1) }
					show = hide
				}
				hide()
				time.Sleep(2 * time.Minute)
				if err := s.e.DeleteSnapshot(s.Context(), snap.ID); !errors.Is(err, drivebay.ErrUnavailable) {
					s.Errorf("deleted while LVM does not see it: %v", err)
				}
				show()
				time.Sleep(2 * time.Minute)
				s.must(s.e.DeleteSnapshot(s.Context(), snap.ID), s.e.DeleteVolume(s.Context(), v.ID))
				if out := s.report(); strings.Contains(out, snap.Location.LV) {
					s.Errorf("LVM has the snapshot still: %s", out)
				}
			})
		})
	}
}

// report is what LVM has.
func (s *stand) report() string {
	s.Helper()
	out, err := s.sim.Run(s.Context(), "lvm", "fullreport", "--all", "--reportformat", "json", "--units", "b", "--nosuffix", "--configreport", "lv", "-o", "lv_name,lv_tags")
	s.must(err)
	return string(out)
}

// TestDeletedRenamed: a partition with the GUID of a volume and another name is not absent: its volume is not deleted before it has its
// name again.
func TestDeletedRenamed(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
		r := requests()["a partition"]
		r.Class.Wipe = drivebay.WipeZero
		v := s.onAPartition(r)
		s.write(v, []byte("secret of a tenant"), 20<<20)
		d := s.driveOf(v)
		var p gpt.Partition
		rename := func(to string) (was string) {
			disk := s.open(d.Name)
			defer disk.Close()
			table, err := gpt.Read(disk)
			s.must(err)
			was, table.Partitions[0].Name, p = table.Partitions[0].Name, to, table.Partitions[0]
			s.must(table.Write(disk), disk.Sync(), disk.RemovePartition(p.Number), disk.AddPartition(p.Number, p.Start, p.Size))
			return was
		}
		was := rename("drivebay-kept")
		s.must(s.mgr.Refresh(s.Context()))
		time.Sleep(6 * time.Minute)
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil || !strings.Contains(err.Error(), was) {
			s.Errorf("deleted by another name: %v", err)
		}
		rename(was)
		s.must(s.mgr.Refresh(s.Context()))
		time.Sleep(time.Minute)
		s.must(s.e.DeleteVolume(s.Context(), v.ID))
		disk, b := s.open(d.Name), make([]byte, len("secret"))
		defer disk.Close()
		if _, err := disk.ReadAt(b, int64(p.Start)+20<<20); err != nil || string(b) == "secret" {
			s.Errorf("deleted, and the data are there: %q, %v", b, err)
		}
	})
}

// TestDeletedWithoutTags: a logical volume with the name of the recorded one, and without its tags, is not absent.
func TestDeletedWithoutTags(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingLVM)
		r.Class.Wipe = drivebay.WipeZero
		v := s.make("v", r)
		s.make("other", r)
		for _, tag := range strings.FieldsFunc(s.report(), func(r rune) bool { return strings.ContainsRune("\", \n{}[]", r) }) {
			if strings.HasPrefix(tag, "drivebay:") {
				_, _ = s.sim.Run(s.Context(), "lvm", "lvchange", "--deltag", tag, v.Location.VG+"/"+v.Location.LV) // some are of the other one
			}
		}
		time.Sleep(2 * time.Minute)
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil || !strings.Contains(s.report(), v.Location.LV) {
			s.Errorf("deleted without its tags: %v", err)
		}
	})
}
