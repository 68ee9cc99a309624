package partitions

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestPartitionsChanged: whatever becomes of the partitions of a drive, the last listing is not believed any more.
func TestPartitionsChanged(t *testing.T) {
	const mib = 1 << 20
	for what, change := range map[string]func(host.Disk) error{
		"none":    func(host.Disk) error { return nil },
		"grown":   func(d host.Disk) error { return d.ResizePartition(2, 8*mib, 5*mib) },
		"smaller": func(d host.Disk) error { return d.ResizePartition(2, 8*mib, 4*mib-512) },
		"moved": func(d host.Disk) error {
			return errors.Join(d.RemovePartition(2), d.AddPartition(2, 9*mib, 4*mib))
		},
		"renumbered": func(d host.Disk) error {
			return errors.Join(d.RemovePartition(2), d.AddPartition(3, 8*mib, 4*mib))
		},
		"swapped": func(d host.Disk) error {
			return errors.Join(d.RemovePartition(1), d.RemovePartition(2), d.AddPartition(2, mib, 4*mib), d.AddPartition(1, 8*mib, 4*mib))
		},
		"another": func(d host.Disk) error { return d.AddPartition(3, 16*mib, mib) },
		"gone":    func(d host.Disk) error { return d.RemovePartition(1) },
	} {
		t.Run(what, func(t *testing.T) {
			m, err := hostsim.Load([]byte("drives: [{count: 1, kind: sata-hdd}]"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			d, err := m.OpenDisk(t.Context(), "/dev/sda", false)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := errors.Join(d.AddPartition(1, mib, 4*mib), d.AddPartition(2, 8*mib, 4*mib)); err != nil {
				t.Fatal(err)
			}
			list, err := ListParts(m, "sda")
			if err != nil || len(list) != 2 {
				t.Fatalf("%v: %+v", err, list)
			}
			if err := change(d); err != nil {
				t.Fatal(err)
			}
			if got := stillThere(m, "sda", list); got != (what == "none") {
				t.Errorf("as listed: %t", got)
			}
			list[0].Name, list[1].Name = list[1].Name, list[0].Name // their numbers have been given to others
			if stillThere(m, "sda", list) {
				t.Error("as listed under other names")
			}
		})
	}
}
