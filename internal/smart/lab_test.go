package smart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay"
)

// recorded is a page as a kernel's emulated drives answered it (QEMU 7.2 NVMe,
// scsi_debug of Linux 6.1).
func recorded(t *testing.T, ev *drivebay.Evidence, d decoder, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "lab", name+".bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d(ev, b); err != nil {
		t.Fatal(err)
	}
}

func TestEmulatedNVMe(t *testing.T) {
	ev := &drivebay.Evidence{}
	recorded(t, ev, NVMeSmartLog, "nvme-smart-log")
	recorded(t, ev, NVMeIdentifyController, "nvme-identify-controller")
	recorded(t, ev, NVMeIdentifyNamespace, "nvme-identify-namespace")
	recorded(t, ev, NVMeErrorLog, "nvme-error-log")
	want := drivebay.Identity{Model: "QEMU NVMe Ctrl", Serial: "LABNVME0", Firmware: "7.2.22", Size: 1 << 30}
	if ev.Identity != want {
		t.Errorf("%+v", ev.Identity)
	}
	// As smartctl 7.3 read the same drive.
	n := ev.NVMe
	if *ev.Temperature != 50 || n.HostReads == 0 || n.DataUnitsRead == 0 || n.PowerOnHours != 0 || n.WarningTemp != 70 || n.CriticalTemp != 100 || len(n.Errors) != 0 || ev.Verdict != drivebay.VerdictPassed {
		t.Errorf("%+v", n)
	}
}

func TestEmulatedSCSI(t *testing.T) {
	ev := &drivebay.Evidence{}
	for name, d := range map[string]decoder{"scsi-inquiry": SCSIInquiry, "scsi-vpd-80": SCSIVPDSerial, "scsi-vpd-83": SCSIVPDDeviceID, "scsi-vpd-b1": SCSIVPDBlockChar,
		"scsi-read-capacity-16": SCSICapacity, "scsi-log-0d": SCSILogTemp, "scsi-log-2f": SCSILogIE} {
		recorded(t, ev, d, name)
	}
	// The WWN is what the kernel wrote to the drive's wwid file.
	want := drivebay.Identity{Vendor: "Linux", Model: "scsi_debug", Firmware: "0191", Serial: "2000", WWN: "naa.33333330000007d0", Size: 64 << 20}
	if ev.Identity != want || ev.Type != drivebay.TypeSSD {
		t.Errorf("%+v %v", ev.Identity, ev.Type)
	}
	if *ev.Temperature != 38 || *ev.SCSI.TripTemperature != 65 || ev.Verdict != drivebay.VerdictPassed {
		t.Errorf("%d, %d, %v", *ev.Temperature, *ev.SCSI.TripTemperature, ev.Verdict)
	}
	if recorded(t, ev, SCSILogIE, "scsi-log-2f-failing"); ev.Verdict != drivebay.VerdictFailed || ev.SCSI.ASC != 0x5D || ev.SCSI.ASCQ != 0xFF {
		t.Errorf("%v %+v", ev.Verdict, ev.SCSI)
	}
}
