package hostsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/smart"
)

// question is a page and who reads it. The readers were written without the
// writers, from the same specifications: each proves the other.
type question struct {
	page   host.Page
	decode func(*drivebay.Evidence, []byte) error
}

var questions = map[host.Family][]question{
	host.FamilyATA: {
		{host.ATAIdentify, smart.ATAIdentify}, {host.ATASmartData, smart.ATASmartData}, {host.ATASmartThresholds, smart.ATASmartThresholds},
		{host.ATASmartStatus, smart.ATASmartStatus}, {host.ATADevStats, smart.ATADevStats}, {host.ATASummaryErrorLog, smart.ATASummaryErrorLog},
		{host.ATAExtErrorLog, smart.ATAExtErrorLog}, {host.ATASelfTestLog, smart.ATASelfTestLog}, {host.ATAExtSelfTestLog, smart.ATAExtSelfTestLog},
		{host.ATASelectiveLog, smart.ATASelectiveLog},
	},
	host.FamilyNVMe: {
		{host.NVMeIdentifyController, smart.NVMeIdentifyController}, {host.NVMeIdentifyNamespace, smart.NVMeIdentifyNamespace},
		{host.NVMeSmartLog, smart.NVMeSmartLog}, {host.NVMeErrorLog, smart.NVMeErrorLog}, {host.NVMeSelfTestLog, smart.NVMeSelfTestLog},
	},
	host.FamilySCSI: {
		{host.SCSIInquiry, smart.SCSIInquiry}, {host.SCSIVPDSerial, smart.SCSIVPDSerial}, {host.SCSIVPDDeviceID, smart.SCSIVPDDeviceID},
		{host.SCSIVPDBlockChar, smart.SCSIVPDBlockChar}, {host.SCSICapacity, smart.SCSICapacity}, {host.SCSILogIE, smart.SCSILogIE},
		{host.SCSILogRead, smart.SCSILogRead}, {host.SCSILogWrite, smart.SCSILogWrite}, {host.SCSILogVerify, smart.SCSILogVerify},
		{host.SCSILogNonMedium, smart.SCSILogNonMedium}, {host.SCSILogTemp, smart.SCSILogTemp}, {host.SCSILogSelfTest, smart.SCSILogSelfTest},
		{host.SCSILogBackground, smart.SCSILogBackground}, {host.SCSIPending, smart.SCSIPending}, {host.SCSIGrownDefects, smart.SCSIGrownDefects},
	},
}

// look asks a drive everything and returns the evidence and the pages that
// their readers refused.
func look(t *testing.T, m *hostsim.Machine, dev string, f host.Family) (*drivebay.Evidence, []string) {
	t.Helper()
	d := open(t, m, dev)
	defer d.Close()
	ev := &drivebay.Evidence{}
	var refused []string
	for _, q := range questions[f] {
		b, err := d.Page(t.Context(), q.page)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.decode(ev, b); err != nil {
			refused = append(refused, err.Error())
		}
	}
	return ev, refused
}

func says[T comparable](t *testing.T, what string, got *T, want T) {
	t.Helper()
	if got == nil || *got != want {
		t.Errorf("%s: %v, want %v", what, show(got), want)
	}
}

func show[T any](p *T) any {
	if p == nil {
		return "nothing"
	}
	return *p
}

func raw(ev *drivebay.Evidence, id uint8) *uint64 {
	for _, a := range ev.ATA.Attributes {
		if a.ID == id {
			return &a.Raw
		}
	}
	return nil
}

func clean(t *testing.T, m *hostsim.Machine, dev string, f host.Family) *drivebay.Evidence {
	t.Helper()
	ev, refused := look(t, m, dev, f)
	if len(refused)+len(ev.Problems) > 0 {
		t.Errorf("%s: refused %q, problems %v", dev, refused, ev.Problems)
	}
	says(t, dev+" verdict", &ev.Verdict, drivebay.VerdictPassed)
	return ev
}

func TestATAPages(t *testing.T) {
	m, _ := load(t, small)
	ev := clean(t, m, "/dev/sda", host.FamilyATA)
	says(t, "type", &ev.Type, drivebay.TypeHDD)
	says(t, "rpm", &ev.Identity.RPM, 7200)
	says(t, "serial", &ev.Identity.Serial, "HDD0")
	says(t, "model", &ev.Identity.Model, "ST16000NM001G-2KK103")
	says(t, "wwn", &ev.Identity.WWN, read(t, m, "sys/block/sda/device/wwid"))
	says(t, "size", &ev.Identity.Size, 512*number(t, m, "sys/block/sda/size"))
	says(t, "hours", ev.PowerOnHours, 2000)
	says(t, "temperature", ev.Temperature, 31)
	for id, want := range map[uint8]uint64{5: 5, 197: 1, 187: 3, 9: 2000} {
		says(t, fmt.Sprintf("attribute %d", id), raw(ev, id), want)
	}
	says(t, "errors", ev.ATA.ErrorCount, 3)
	if len(ev.ATA.Errors) != 3 || ev.ATA.Errors[0].Hours != 2000 {
		t.Errorf("error log %+v", ev.ATA.Errors)
	}

	ssd := clean(t, m, "/dev/sdb", host.FamilyATA)
	says(t, "type", &ssd.Type, drivebay.TypeSSD)
	says(t, "used", ssd.PercentUsed, 20)
	says(t, "written", ssd.BytesWritten, 1e12)
	says(t, "crc errors", raw(ssd, 199), 7)
}

func number(t *testing.T, m *hostsim.Machine, name string) (n uint64) {
	t.Helper()
	if _, err := fmt.Sscan(read(t, m, name), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNVMePages(t *testing.T) {
	m, _ := load(t, small)
	ev := clean(t, m, "/dev/nvme0n1", host.FamilyNVMe)
	says(t, "serial", &ev.Identity.Serial, "NVME0")
	says(t, "firmware", &ev.Identity.Firmware, "GDC5602Q")
	says(t, "wwn", &ev.Identity.WWN, read(t, m, "sys/block/nvme0n1/wwid"))
	says(t, "size", &ev.Identity.Size, 512*number(t, m, "sys/block/nvme0n1/size"))
	says(t, "used", ev.PercentUsed, 3)
	says(t, "hours", ev.PowerOnHours, 1000)
	says(t, "temperature", ev.Temperature, 40)
	says(t, "written", ev.BytesWritten, 512e9)
	says(t, "media errors", &ev.NVMe.MediaErrors, 2)
	if len(ev.NVMe.Errors) != 2 || ev.NVMe.Errors[0].Number != 2 {
		t.Errorf("error log %+v", ev.NVMe.Errors)
	}
}

func TestSCSIPages(t *testing.T) {
	m, _ := load(t, small)
	ev := clean(t, m, "/dev/sdc", host.FamilySCSI)
	says(t, "serial", &ev.Identity.Serial, "SAS0")
	says(t, "vendor", &ev.Identity.Vendor, "SEAGATE")
	says(t, "wwn", &ev.Identity.WWN, read(t, m, "sys/block/sdc/device/wwid"))
	says(t, "size", &ev.Identity.Size, 512*number(t, m, "sys/block/sdc/size"))
	says(t, "hours", ev.PowerOnHours, 4000)
	says(t, "temperature", ev.Temperature, 34)
	says(t, "trip", ev.SCSI.TripTemperature, 60)
	says(t, "grown defects", ev.SCSI.GrownDefects, 6)
	says(t, "pending", ev.SCSI.PendingDefects, 2)
	uncorrected := ev.SCSI.ErrorCounters["read"].Uncorrected
	says(t, "uncorrected", &uncorrected, 1)

	d := open(t, m, "/dev/sdd")
	b, err := d.Page(t.Context(), host.SCSILogSSD)
	if err != nil {
		t.Fatal(err)
	}
	var ssd drivebay.Evidence
	if err := smart.SCSILogSSD(&ssd, b); err != nil {
		t.Error(err)
	}
	says(t, "used", ssd.PercentUsed, 30)
}

var devices = map[string]struct {
	dev    string
	family host.Family
}{"0": {"/dev/nvme0n1", host.FamilyNVMe}, "2": {"/dev/sda", host.FamilyATA}, "4": {"/dev/sdc", host.FamilySCSI}}

// TestFaultyPages: what faults do is what readers see.
func TestFaultyPages(t *testing.T) {
	for bay, d := range devices {
		m, _ := load(t, small)
		inject(t, m, bay, "fail")
		ev, _ := look(t, m, d.dev, d.family)
		says(t, d.dev+" verdict", &ev.Verdict, drivebay.VerdictFailed)

		inject(t, m, bay, "heal")
		inject(t, m, bay, "counters-max")
		if ev, refused := look(t, m, d.dev, d.family); len(refused) > 0 || ev.PowerOnHours == nil {
			t.Errorf("%s with the largest counters: refused %q, hours %v", d.dev, refused, show(ev.PowerOnHours))
		}
		inject(t, m, bay, "heal")
		inject(t, m, bay, "short-pages")
		if _, refused := look(t, m, d.dev, d.family); len(refused) < 2 {
			t.Errorf("%s with short pages: refused %q", d.dev, refused)
		}
		inject(t, m, bay, "garbage") // nothing in particular: no reader may break
		look(t, m, d.dev, d.family)
	}
	m, _ := load(t, small)
	inject(t, m, "2", "bad-checksum")
	if ev, refused := look(t, m, "/dev/sda", host.FamilyATA); len(refused) < 5 || ev.PowerOnHours != nil && ev.ATA.Attributes != nil {
		t.Errorf("wrong checksums: refused %q", refused)
	}
}

// TestSelfTest: it takes its time, shows how far it is, and leaves a result.
func TestSelfTest(t *testing.T) {
	for bay, k := range devices {
		t.Run(k.dev, func(t *testing.T) {
			m, clock := load(t, small)
			d := open(t, m, k.dev)
			begin := func(kind host.SelfTestKind) {
				if err := d.SelfTest(t.Context(), host.SelfTest{Family: k.family, Kind: kind}); err != nil {
					t.Fatal(err)
				}
			}
			newest := func() drivebay.SelfTest {
				ev, _ := look(t, m, k.dev, k.family)
				if len(ev.SelfTests) == 0 {
					return drivebay.SelfTest{}
				}
				return ev.SelfTests[0]
			}
			begin(host.SelfTestShort)
			clock.Advance(time.Minute)
			ev, _ := look(t, m, k.dev, k.family)
			running := ev.SelfTestProgress != nil || len(ev.SelfTests) > 0 && ev.SelfTests[0].Result == drivebay.SelfTestRunning
			if !running {
				t.Errorf("nothing runs: %+v", ev.SelfTests)
			}
			if k.family != host.FamilySCSI {
				if p := ev.SelfTestProgress; p == nil || *p < 40 || *p > 60 {
					t.Errorf("half way there are %v %% left", show(p))
				}
			}
			clock.Advance(time.Minute)
			if got := newest(); got.Result != drivebay.SelfTestPassed || got.Kind != "short" {
				t.Errorf("it ended with %+v", got)
			}
			begin(host.SelfTestLong)
			begin(host.SelfTestAbort)
			if got := newest(); got.Result != drivebay.SelfTestAborted || got.Kind != "long" {
				t.Errorf("an aborted one ended with %+v", got)
			}
			inject(t, m, bay, "selftest-fail", "count=0")
			begin(host.SelfTestLong)
			clock.Advance(48 * time.Hour)
			if got := newest(); got.Result != drivebay.SelfTestFailed || got.LBA == nil {
				t.Errorf("a failing one ended with %+v", got)
			}
			if err := d.SelfTest(t.Context(), host.SelfTest{Family: "other", Kind: host.SelfTestShort}); err == nil {
				t.Error("a self-test of another family was taken")
			}
		})
	}
}

// TestContent: what is written on a drive is recognised as that.
func TestContent(t *testing.T) {
	for kind, want := range map[string]string{
		"blank": "", "gpt": "gpt", "mbr": "dos", "ext4": "ext4", "xfs": "xfs", "btrfs": "btrfs", "lvm": "LVM2_member", "luks": "crypto_LUKS",
		"md": "linux_raid_member", "swap": "swap", "bluestore": "ceph_bluestore",
	} {
		for _, block := range []int{512, 4096} {
			m, err := hostsim.New(hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Content: kind, Block: block}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			c := content.Detect(open(t, m, "/dev/nvme0n1"), 512*number(t, m, "sys/block/nvme0n1/size"), block)
			switch {
			case want == "":
				says(t, kind, &c.Kind, drivebay.ContentBlank)
			case c.Kind != drivebay.ContentForeign || len(c.Signatures) == 0 || c.Signatures[0].Format != want:
				t.Errorf("%s with blocks of %d reads as %+v", kind, block, c)
			}
		}
	}
}

// TestAging: hours pass with the machine's clock.
func TestAging(t *testing.T) {
	m, clock := load(t, small)
	clock.Advance(100 * time.Hour)
	for bay, hours := range map[string]uint64{"0": 1100, "2": 2100, "4": 4100} {
		ev, _ := look(t, m, devices[bay].dev, devices[bay].family)
		says(t, devices[bay].dev, ev.PowerOnHours, hours)
	}
}
