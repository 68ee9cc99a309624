//go:build lab

package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/compare"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// everyKind is a machine with a drive of each kind that QEMU has.
var everyKind = machine.Spec{NativeSlots: true, Drives: []machine.Drive{
	{ID: "nvme0", Kind: machine.NVMe, Serial: "NVSER0", Size: 4 << 30, Slot: 3},
	{ID: "nvme1", Kind: machine.NVMe, Serial: "NVSER1", Size: 2 << 30, Paths: 2, Block: 4096, Slot: 5},
	{ID: "sata0", Kind: machine.SATA, Serial: "ATASER0", Model: "LABDISK", Firmware: "1.2", WWN: 0x5000c500a0000000, RPM: 7200},
	{ID: "sata1", Kind: machine.SATA, Serial: "ATASER1", Model: "LABSSD", Firmware: "1.3", WWN: 0x5000c500a0000001, RPM: 1},
	{ID: "scsi0", Kind: machine.SCSI, Serial: "SCSISER0", Vendor: "LABVEND", Model: "LABSCSI", Firmware: "0042", WWN: 0x5000c500b0000000, RPM: 15000, Size: 3 << 40},
	{ID: "scsi1", Kind: machine.SCSI, Serial: "SCSISER1", Vendor: "LABVEND", Model: "LABSSD", Firmware: "0043", WWN: 0x5000c500b0000001, RPM: 1, Block: 4096},
	{ID: "sas0", Kind: machine.SAS, Serial: "SASSER0", Vendor: "LABVEND", Model: "LABSAS", Firmware: "0044", WWN: 0x5000c500c0000000, RPM: 10000},
	{ID: "usb0", Kind: machine.USB, Serial: "USBSER0", Size: 512 << 20},
	{ID: "vd0", Kind: machine.Virtio, Serial: "VDSER0", Slot: 9},
}}

// expect derives from the description what the inventory must show. What a kind
// of device cannot tell, QEMU's own words stand in for.
func expect(d machine.Drive, qemu string) compare.Expect {
	e := compare.Expect{Serial: d.Serial, Vendor: d.Vendor, Model: d.Model, Firmware: d.Firmware, Size: uint64(d.Size),
		LogicalBlock: max(d.Block, 512), PhysBlock: max(d.PhysBlock, d.Block, 512), Paths: max(d.Paths, 1),
		Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse}
	if d.Size == 0 {
		e.Size = 1 << 30
	}
	if d.WWN != 0 {
		e.WWN = fmt.Sprintf("naa.%016x", d.WWN)
	}
	if d.RPM > 1 {
		e.RPM, e.Type = d.RPM, drivebay.TypeHDD
	} else if d.RPM == 1 {
		e.Type = drivebay.TypeSSD
	}
	switch d.Kind {
	case machine.NVMe:
		e.Model, e.Firmware, e.Type = "QEMU NVMe Ctrl", qemu, drivebay.TypeNVMe
		e.Transport, e.Protocol = drivebay.TransportNVMe, drivebay.ProtocolNVMe
		e.Bay = fmt.Sprint(d.Slot)
	case machine.SATA:
		e.Transport, e.Protocol = drivebay.TransportSATA, drivebay.ProtocolATA
	case machine.SCSI:
		e.Transport, e.Protocol = drivebay.TransportSCSI, drivebay.ProtocolSCSI
	case machine.SAS:
		e.Transport, e.Protocol = drivebay.TransportSAS, drivebay.ProtocolSCSI
	case machine.USB:
		e.Vendor, e.Model, e.Firmware = "QEMU", "QEMU HARDDISK", "2.5+"
		e.Transport, e.Protocol = drivebay.TransportUSB, drivebay.ProtocolSCSI
	case machine.Virtio:
		e.Transport, e.Protocol = drivebay.TransportVirtio, drivebay.ProtocolNone
	}
	return e
}

// TestLabInventory: the daemon lists what the machine was made of, field by
// field, and says of each drive's health what smartctl says.
func TestLabInventory(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, everyKind)
	debug := m.ScsiDebug("dev_size_mb=64")
	d := m.Daemon(quick)
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := d.Snapshot(t.Context())
	m.Must(err)

	qemu := m.Sh("nvme id-ctrl /dev/nvme0 | sed -n 's/^fr *: *//p'")
	var want []compare.Expect
	for _, x := range everyKind.Drives {
		want = append(want, expect(x, qemu))
	}
	want = append(want,
		compare.Expect{Serial: m.Sh("sg_vpd -r -p sn /dev/%s | tail -c +5 | tr -d ' '", debug[0]), Vendor: "Linux", Model: "scsi_debug",
			Firmware: "0191", WWN: m.Sh("cat /sys/block/%s/device/wwid", debug[0]), Size: 64 << 20, Type: drivebay.TypeSSD,
			Transport: drivebay.TransportSCSI, Protocol: drivebay.ProtocolSCSI, LogicalBlock: 512, PhysBlock: 512, Paths: 1,
			Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse},
		compare.Expect{Serial: "LABROOT", Size: 1 << 30, Transport: drivebay.TransportVirtio, Protocol: drivebay.ProtocolNone,
			LogicalBlock: 512, PhysBlock: 512, Paths: 1, ReadOnly: true, Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse})
	for _, diff := range compare.Inventory(want, s) {
		t.Error(diff)
	}

	for _, x := range s.Drives {
		if x.Protocol == drivebay.ProtocolNone {
			continue
		}
		t.Run("smartctl/"+x.Name, func(t *testing.T) { sameAsSmartctl(t, m.For(t), d.For(t), x.Serial, smartGo) })
	}
}

// sameAsSmartctl asks smartctl and our daemon about the same drive, one right
// after the other. Further witnesses are asked between the two: our look reads the content of the drive as
// well, which moves its counters.
func sameAsSmartctl(t *testing.T, m *lab.Machine, d *lab.Daemon, serial string, witnesses ...witness) {
	t.Helper()
	x := d.BySerial(serial)
	kind := ""
	if x.Transport == drivebay.TransportUSB {
		kind = " -d scsi" // smartctl does not know QEMU's bridge
	}
	document := m.Output("smartctl -x -j" + kind + " /dev/" + x.Name)
	var facts []string
	for _, ask := range witnesses {
		facts = append(facts, ask(m, x))
	}
	began := m.Now()
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, _ = d.UntilDrive(serial, "looked at again", poll, func(x *drivebay.Drive) error {
		if x.Evidence.At.Before(began) {
			return errors.New("not yet")
		}
		return nil
	})
	n, diffs := compare.Evidence([]byte(document), *x)
	for _, diff := range diffs {
		t.Error(diff)
	}
	t.Logf("%s (%s): %d fields of smartctl compared", x.Name, x.Model, n)
	if n < 8 {
		t.Errorf("only %d fields were compared: %s", n, document)
	}
	for _, f := range facts {
		n, diffs := compare.Witness([]byte(f), *x)
		for _, diff := range diffs {
			t.Error(diff)
		}
		t.Logf("%s (%s): %d facts of another witness compared", x.Name, x.Model, n)
		if n < 4 {
			t.Errorf("only %d facts were compared: %s", n, f)
		}
	}
}

// witness asks a drive in a guest and returns its facts as JSON.
type witness func(m *lab.Machine, x *drivebay.Drive) string

// smartGo is the witness of hack/lab/witness. It is asked about the drives of QEMU only: it requests no data
// from a drive behind a translator (a sector count of 0), takes the empty answer for an identity, and libata
// alone makes up for it.
func smartGo(m *lab.Machine, x *drivebay.Drive) string {
	return m.Output(m.Program("./hack/lab/witness") + " " + strings.ToLower(x.Protocol.String()) + " /dev/" + x.Name)
}
