package machine

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// TestDevices: each property as QEMU's own documentation of the device names it
// (qemu-system-x86_64 -device NAME,help).
func TestDevices(t *testing.T) {
	full := Drive{ID: "d0", Vendor: "ACME", Model: "Disk", Firmware: "F1", Serial: "SER0", WWN: 0x5000c50000000001,
		Size: 1 << 30, Block: 512, PhysBlock: 4096, RPM: 7200, Paths: 1}
	least := Drive{ID: "d0", Serial: "SER0", Size: 1 << 30, Block: 512, PhysBlock: 512, Paths: 1}
	as := func(d Drive, k Kind, paths int) Drive { d.Kind, d.Paths = k, paths; return d }
	for name, test := range map[string]struct {
		drive Drive
		slots []int
		want  []device
	}{
		"NVMe": {as(full, NVMe, 1), []int{3}, []device{
			{"driver": "nvme", "id": "d0", "bus": "slot3", "drive": "n-d0", "serial": "SER0", "logical_block_size": 512, "physical_block_size": 4096},
		}},
		"NVMe on two paths": {as(full, NVMe, 2), []int{3, 4}, []device{
			{"driver": "nvme-subsys", "id": "d0-subsystem", "nqn": "nqn.2026-01.lab:SER0"},
			{"driver": "nvme", "id": "d0-0", "bus": "slot3", "subsys": "d0-subsystem", "serial": "SER0"},
			{"driver": "nvme", "id": "d0-1", "bus": "slot4", "subsys": "d0-subsystem", "serial": "SER0"},
			{"driver": "nvme-ns", "id": "d0", "bus": "d0-0", "drive": "n-d0", "shared": true, "logical_block_size": 512, "physical_block_size": 4096},
		}},
		"SATA": {as(full, SATA, 1), nil, []device{ // the port is given on the command line
			{"driver": "ide-hd", "id": "d0", "drive": "n-d0", "serial": "SER0", "model": "Disk", "ver": "F1", "wwn": uint64(0x5000c50000000001),
				"rotation_rate": 7200, "logical_block_size": 512, "physical_block_size": 4096},
		}},
		"SCSI": {as(full, SCSI, 1), nil, []device{
			{"driver": "scsi-hd", "id": "d0", "bus": "vs.0", "drive": "n-d0", "serial": "SER0", "device_id": "SER0", "vendor": "ACME", "product": "Disk", "ver": "F1",
				"wwn": uint64(0x5000c50000000001), "rotation_rate": 7200, "logical_block_size": 512, "physical_block_size": 4096},
		}},
		"SAS": {as(full, SAS, 1), nil, []device{
			{"driver": "scsi-hd", "id": "d0", "bus": "sas.0", "drive": "n-d0", "serial": "SER0", "device_id": "SER0", "vendor": "ACME", "product": "Disk", "ver": "F1",
				"wwn": uint64(0x5000c50000000001), "rotation_rate": 7200, "logical_block_size": 512, "physical_block_size": 4096},
		}},
		"USB": {as(full, USB, 1), nil, []device{
			{"driver": "usb-storage", "id": "d0", "bus": "xhci.0", "drive": "n-d0", "serial": "SER0"},
		}},
		"virtio": {as(full, Virtio, 1), []int{20}, []device{
			{"driver": "virtio-blk-pci", "id": "d0", "bus": "slot20", "drive": "n-d0", "serial": "SER0", "logical_block_size": 512, "physical_block_size": 4096},
		}},
		"SCSI, the least": {as(least, SCSI, 1), nil, []device{ // what is not said is QEMU's choice
			{"driver": "scsi-hd", "id": "d0", "bus": "vs.0", "drive": "n-d0", "serial": "SER0", "device_id": "SER0", "logical_block_size": 512, "physical_block_size": 512},
		}},
		"SATA, the least": {as(least, SATA, 1), nil, []device{
			{"driver": "ide-hd", "id": "d0", "drive": "n-d0", "serial": "SER0", "logical_block_size": 512, "physical_block_size": 512},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := devices(test.drive, test.slots)
			if len(got) != len(test.want) {
				t.Fatalf("%d devices, want %d: %v", len(got), len(test.want), got)
			}
			for i, want := range test.want {
				keys := slices.Sorted(maps.Keys(want))
				if have := slices.Sorted(maps.Keys(got[i])); !slices.Equal(have, keys) {
					t.Errorf("device %d has %v, want %v", i, have, keys)
				}
				for _, k := range keys {
					if got[i][k] != want[k] {
						t.Errorf("device %d: %s is %#v, want %#v", i, k, got[i][k], want[k])
					}
				}
			}
		})
	}
}

func TestBlockdev(t *testing.T) {
	got := blockdev(Drive{ID: "d0", File: "/tmp/a file"})
	want := map[string]any{"driver": "raw", "node-name": "n-d0", "discard": "unmap",
		"file": map[string]any{"driver": "file", "filename": "/tmp/a file", "discard": "unmap"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestBackend: a fault goes over the device that holds the content.
func TestBackend(t *testing.T) {
	for paths, want := range map[int]string{1: "d0", 2: "d0"} {
		d := Drive{ID: "d0", Kind: NVMe, Serial: "S", Paths: paths}
		own := &drive{Drive: d, devices: devices(d, []int{1, 2})}
		if got := own.backend(); got != want {
			t.Errorf("%d paths: %s, want %s", paths, got, want)
		}
	}
}
