//go:build lab

package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabPull: a drive that is pulled is OFFLINE within a second, and when it
// comes back, under another kernel name or not, it is the same drive.
func TestLabPull(t *testing.T) {
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		nvme("NVA"), nvme("NVB"), scsi("SDA", 0x5000c500b0000000), scsi("SDB", 0x5000c500b0000001),
		{ID: "VDA", Kind: machine.Virtio, Serial: "VDA"}, {ID: "VDB", Kind: machine.Virtio, Serial: "VDB"},
		{ID: "USA", Kind: machine.USB, Serial: "USA"}, {ID: "USB", Kind: machine.USB, Serial: "USB"},
		sata("ATA", 0x5000c500a0000000), sata("ATB", 0x5000c500a0000001),
	}})
	d := m.Daemon(quick)
	for _, pair := range [][2]string{{"NVA", "NVB"}, {"SDA", "SDB"}, {"VDA", "VDB"}, {"USA", "USB"}} {
		t.Run(pair[0], func(t *testing.T) {
			m, d := m.For(t), d.For(t)
			swapNames(t, d, pair,
				func(id string) { m.Must(m.Unplug(t.Context(), id)) },
				func(id string) { m.Must(m.Replug(t.Context(), id)) })
		})
	}
	// QEMU cannot pull a SATA drive: the kernel is told to let go of it, which is
	// the same event for everybody above the driver.
	t.Run("ATA", func(t *testing.T) {
		m, d := m.For(t), d.For(t)
		hosts := map[string]string{}
		for _, id := range []string{"ATA", "ATB"} {
			hosts[id] = m.Sh("cd -P /sys/block/%s/device/../../scsi_host/*; basename $PWD", m.Name(id))
		}
		swapNames(t, d, [2]string{"ATA", "ATB"},
			func(id string) { m.Sh("echo 1 >/sys/block/%s/device/delete", m.Name(id)) },
			func(id string) {
				m.Sh("echo '- - -' >/sys/class/scsi_host/%s/scan", hosts[id])
				m.Name(id)
			})
	})
}

// swapNames pulls two drives and puts them back in the other order, so that each
// gets the other's name.
func swapNames(t *testing.T, d *lab.Daemon, pair [2]string, pull, put func(id string)) {
	before := map[string]*drivebay.Drive{}
	for _, id := range pair {
		before[id] = d.BySerial(id)
		began := time.Now()
		pull(id)
		d.UntilDrive(id, "pulled", 5*time.Second, is(drivebay.StatusOffline))
		within(t, "pull of "+before[id].Name+" seen", time.Since(began), time.Second)
	}
	// The kernel gives the first free name: the one that had the later goes first.
	back := []string{pair[1], pair[0]}
	slices.SortFunc(back, func(a, b string) int { return strings.Compare(before[b].Name, before[a].Name) })
	for _, id := range back {
		put(id)
		began := time.Now()
		after, _ := d.UntilDrive(id, "put back", 5*time.Second, is(drivebay.StatusOnline))
		within(t, "return as "+after.Name+" seen", time.Since(began), time.Second)
		if was := before[id]; after.ID != was.ID || !after.FirstSeen.Equal(was.FirstSeen) {
			t.Errorf("%s came back as another drive: %s since %v, was %s since %v", id, after.ID, after.FirstSeen, was.ID, was.FirstSeen)
		}
	}
	if a, b := d.BySerial(pair[0]), d.BySerial(pair[1]); a.Name != before[pair[1]].Name || b.Name != before[pair[0]].Name {
		t.Errorf("the names were not swapped: %s and %s, before %s and %s", a.Name, b.Name, before[pair[0]].Name, before[pair[1]].Name)
	}
	s, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, x := range s.Drives {
		seen[x.Serial]++
	}
	if seen[pair[0]] != 1 || seen[pair[1]] != 1 {
		t.Errorf("listed %d and %d times", seen[pair[0]], seen[pair[1]])
	}
}
