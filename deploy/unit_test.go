package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnit has systemd read the unit, with a program that is there.
func TestUnit(t *testing.T) {
	b, err := os.ReadFile("systemd/drivebay.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := string(b)
	for _, must := range []string{"Type=notify\n", "CAP_SYS_RAWIO", "CAP_SYS_ADMIN", "CAP_SYS_RESOURCE", "CAP_NET_ADMIN", "NoNewPrivileges=yes\n", "@mount", "AF_NETLINK"} {
		if !strings.Contains(unit, must) {
			t.Errorf("the unit lacks %s", must)
		}
	}
	// These would take the drives, their lights or the kernel's log away, or give the
	// daemon mounts of its own that nobody else sees.
	for _, never := range []string{"PrivateDevices=", "ProtectKernelTunables=", "ProtectKernelLogs=", "PrivateNetwork=", "DeviceAllow=", "ProtectClock=",
		"ProtectSystem=", "ProtectHome=", "PrivateTmp=", "PrivateMounts=", "ProtectKernelModules=", "ProtectControlGroups=", "ProtectProc=", "ReadWritePaths=", "MountFlags=", "RestrictSUIDSGID="} {
		if strings.Contains(unit, "\n"+never) {
			t.Errorf("the unit has %s", never)
		}
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	file := filepath.Join(t.TempDir(), "drivebay.service")
	if err := os.WriteFile(file, []byte(strings.Replace(unit, "/usr/local/bin/drivebay", "/bin/true", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "drivebay.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
