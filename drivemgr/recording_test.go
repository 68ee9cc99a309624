package drivemgr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
)

// The recording is of a QEMU server: LVM with a mounted ext4 on NVMe, SATA on
// AHCI, SAS on mptsas, virtio-scsi, scsi_debug, and the virtio disk it runs from.
// Its names were replaced, so what is expected here are not the original ones.
func TestLabRecording(t *testing.T) {
	m, err := host.Recorded("../testdata/lab-recording")
	if err != nil {
		t.Fatal(err)
	}
	s, err := drivemgr.ReadOnce(t.Context(), m, drivemgr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	states := map[drivebay.Protocol]string{drivebay.ProtocolNVMe: "live", drivebay.ProtocolATA: "running", drivebay.ProtocolSCSI: "running"}
	var got []string
	for _, d := range s.Drives {
		if d.Kernel.State != states[d.Protocol] {
			t.Errorf("%s: the kernel says %q", d.Name, d.Kernel.State)
		}
		temp := "-"
		if d.Temperature != nil {
			temp = fmt.Sprint(*d.Temperature)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %d %s %s %s own %v, %s degrees, bay %q, content %v, problems %d",
			d.Name, d.Model, d.Type, d.Transport, d.Size, d.Protocol, d.Firmware, d.Health, d.Evidence.Verdict, temp, d.Slot.Bay, d.Content.Kind, len(unexpected(d.Evidence.Problems))))
	}
	want := []string{
		"sdd scsi_debug SSD scsi 8388608 scsi 0191 GOOD own PASSED, 38 degrees, bay \"\", content unknown, problems 0",
		"sda LABDISK HDD sata 1073741824 ata 1.2 GOOD own PASSED, 31 degrees, bay \"\", content unknown, problems 0",
		"sdb QEMU HARDDISK HDD sas 1073741824 scsi 2.5+ GOOD own UNKNOWN, - degrees, bay \"0\", content unknown, problems 0",
		"vda  UNKNOWN virtio 1073741824 none  GOOD own UNKNOWN, - degrees, bay \"\", content foreign, problems 0",
		"nvme0n1 QEMU NVMe Ctrl NVME nvme 1073741824 nvme 7.2.22 GOOD own PASSED, 50 degrees, bay \"0-2\", content foreign, problems 0",
		"nvme1n1 QEMU NVMe Ctrl NVME nvme 1073741824 nvme 7.2.22 GOOD own PASSED, 50 degrees, bay \"0-3\", content unknown, problems 0",
		"sdc QEMU HARDDISK HDD scsi 1073741824 scsi 2.5+ GOOD own UNKNOWN, - degrees, bay \"\", content unknown, problems 0",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func unexpected(problems []drivebay.Problem) (out []drivebay.Problem) {
	for _, p := range problems {
		if !p.Expected {
			out = append(out, p)
		}
	}
	return out
}
