package host

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

// lab is a recording of an emulated server: NVMe with LVM on it, SATA, SAS, a
// SCSI drive without a worldwide name, and the kernel's SCSI debug drive.
const lab = "../../testdata/lab-recording"

func TestLabRecording(t *testing.T) {
	m, err := Recorded(lab)
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Describe(); d.Kind != "recorded" || d.Name == "" {
		t.Errorf("%+v", d)
	}
	if first := m.Now(); first.Year() != 2026 || !m.Now().Equal(first) {
		t.Errorf("the time of a recording moves: %v", first)
	}
	mounts, err := m.Mounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mounted := false
	for _, mt := range mounts {
		mounted = mounted || mt.Target == "/mnt/data" && mt.FS == "ext4" && mt.DevNum == "253:0"
	}
	if !mounted {
		t.Errorf("/mnt/data is not among %d mounts", len(mounts))
	}
	if out, err := m.Run(t.Context(), "lvm", "fullreport", "--reportformat", "json", "--units", "b", "--nosuffix"); err != nil || !bytes.Contains(out, []byte("labvg")) {
		t.Errorf("lvm's report: %v", err)
	}
	if _, err := m.Run(t.Context(), "lvm", "vgremove", "labvg"); !errors.Is(err, ErrImpossible) {
		t.Errorf("a program that was not recorded: %v", err)
	}
	if err := m.WriteFile("sys/block/sda/uevent", []byte("change")); !errors.Is(err, ErrImpossible) {
		t.Errorf("a recording is written to: %v", err)
	}
	if _, err := m.OpenDrive(t.Context(), "/dev/sdz"); !errors.Is(err, ErrGone) {
		t.Errorf("a drive that is not there: %v", err)
	}
}

func TestRecordedPages(t *testing.T) {
	m, err := Recorded(lab)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dev    string
		page   Page
		length int
		prefix []byte
		err    error
	}{
		{"sda", ATAPowerMode, 1, []byte{0xff}, nil},
		{"sda", ATASmartStatus, 2, []byte{0x4f, 0xc2}, nil},
		{"sda", ATAIdentify, 512, []byte{0x40, 0}, nil},
		{"sda", ATALogDirectory, 0, nil, ErrUnsupported},
		{"nvme0n1", NVMeSmartLog, 512, []byte{0, 0x43, 1}, nil}, // 323 K
		{"nvme0n1", NVMeSelfTestLog, 0, nil, ErrUnsupported},
		{"sdd", SCSILogTemp, 16, []byte{0x0d, 0, 0, 0x0c}, nil},
		{"sdd", SCSITestUnitReady, 3, []byte{0, 0, 0}, nil},
		{"vda", SCSIInquiry, 0, nil, ErrImpossible},
	} {
		d, err := m.OpenDrive(t.Context(), "/dev/"+c.dev)
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.Page(t.Context(), c.page)
		if len(b) != c.length || !bytes.HasPrefix(b, c.prefix) || !errors.Is(err, c.err) {
			t.Errorf("%s %s: %d bytes % x, %v", c.dev, c.page, len(b), b[:min(4, len(b))], err)
		}
		if _, err := d.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: content: %v", c.dev, err)
		}
		if err := d.SelfTest(t.Context(), SelfTest{FamilyATA, SelfTestShort}); !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: self-test: %v", c.dev, err)
		}
	}
}

// Nothing ever happens in a recording; whoever waits is let go in the end.
func TestRecordingIsQuiet(t *testing.T) {
	m, err := Recorded(lab)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	events, err := m.Uevents(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := m.KernelLog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-events:
		t.Errorf("an event: %+v", e)
	case l := <-lines:
		t.Errorf("a line: %+v", l)
	default:
	}
	cancel()
	late := time.After(10 * time.Second)
	for range 2 {
		select {
		case _, ok := <-events:
			events = nil
			if ok {
				t.Error("an event after the end")
			}
		case _, ok := <-lines:
			lines = nil
			if ok {
				t.Error("a line after the end")
			}
		case <-late:
			t.Fatal("a channel stays open")
		}
	}
}

func TestErrorsReplay(t *testing.T) {
	for _, err := range []error{ErrUnsupported, ErrStandby, ErrTimeout, ErrPermission, ErrGone} {
		if back := refusals[RefusalName(err)]; back != err {
			t.Errorf("%v reads back as %v", err, back)
		}
	}
	if got := RefusalName(errors.New("sense key 3h")); got != "sense key 3h" {
		t.Errorf("another error is kept as %q", got)
	}
}
