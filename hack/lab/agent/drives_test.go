package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDrivesWaits(t *testing.T) {
	c := newGuest(t)
	if _, err := c.Drives(t.Context(), nil, 0); err != nil {
		t.Errorf("no drive is asked for: %v", err)
	}
	began := time.Now()
	_, err := c.Drives(t.Context(), []string{"NO-SUCH-SERIAL"}, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "NO-SUCH-SERIAL") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > patience {
		t.Errorf("it waited %v", took)
	}
}

// TestSerial: where the kernel shows it differs from bus to bus.
func TestSerial(t *testing.T) {
	for name, test := range map[string]struct{ file, content, want string }{
		"nvme and virtio": {"disk/serial", "NV0 \n", "NV0"},
		"nvme controller": {"device/serial", "NV1\n", "NV1"},
		"scsi page 80h":   {"device/vpd_pg80", "\x00\x80\x00\x08SD0     ", "SD0"},
		"empty page 80h":  {"device/vpd_pg80", "\x00\x80\x00\x00", ""},
		"usb bridge":      {"serial", "USB0\n", "USB0"}, // above the SCSI device
		"none":            {"disk/size", "1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bus := t.TempDir()
			for _, dir := range []string{"disk", "host0/device"} {
				if err := os.MkdirAll(filepath.Join(bus, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(filepath.Join(bus, "host0/device"), filepath.Join(bus, "disk/device")); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(bus, strings.Replace(test.file, "device/", "host0/device/", 1))
			if err := os.WriteFile(file, []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := serial(filepath.Join(bus, "disk")); got != test.want {
				t.Errorf("serial number %q, want %q", got, test.want)
			}
		})
	}
}
