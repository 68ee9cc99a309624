package hosttest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
	"github.com/drivebay/drivebay/internal/hostsim"
)

const repository = "../../.."

func TestSimulated(t *testing.T) {
	m, err := hostsim.LoadFile(filepath.Join(repository, "examples", "rack24.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	hosttest.Conformance(t, m, hosttest.Options{Min: map[string]int{
		"canonical": 150, "block": 60, "uevent-file": 60, "stat": 50, "partitions": 6, "udev": 24, "scsi": 60, "nvme": 40, "bays": 24,
		"foreign-page": 48, "mounts": 6, "uevents": 1, "kernel-log": 1, "clock": 2, "run": 3,
	}})
}

// TestSimulatedLater: a machine on which things have happened is one all the same.
func TestSimulatedLater(t *testing.T) {
	m, err := hostsim.LoadFile(filepath.Join(repository, "examples", "rack24.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	for _, f := range []hostsim.Fault{
		{Bay: "0", Fault: "vanish"}, {Bay: "5", Fault: "move", Args: hostsim.Args{"to": "7"}}, {Bay: "9", Fault: "vanish"},
		{Bay: "9", Fault: "return", Args: hostsim.Args{"rename": "true"}}, {Bay: "10", Fault: "no-serial", Args: hostsim.Args{"wwn": "false"}},
		{Bay: "11", Fault: "duplicate-serial", Args: hostsim.Args{"of": "8"}}, {Bay: "12", Fault: "non-utf8"}, {Bay: "21", Fault: "vanish"},
		{Drive: "nvme0n1", Fault: "vanish"}, {Bay: "4", Fault: "nvme-dead"}, {Bay: "13", Fault: "garbage"}, {Bay: "14", Fault: "eio"}, {Bay: "18", Fault: "offline"},
	} {
		if err := m.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.Conformance(t, m, hosttest.Options{Min: map[string]int{"canonical": 130, "block": 50, "scsi": 60, "nvme": 30, "foreign-page": 40}})
}

func TestRecorded(t *testing.T) {
	folder := os.Getenv("DRIVEBAY_CORPUS")
	asked := folder != ""
	if !asked {
		folder = filepath.Join(repository, "..", "shared", "corpus")
	}
	folder = filepath.Join(folder, "vm-recording", "sysroot")
	if _, err := os.Stat(folder); err != nil {
		if asked && os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no recording at %s: set DRIVEBAY_CORPUS", folder)
	}
	m, err := host.Recorded(folder)
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Conformance(t, m, hosttest.Options{Min: map[string]int{
		"canonical": 60, "block": 30, "uevent-file": 30, "stat": 30, "partitions": 6, "udev": 10, "scsi": 16, "nvme": 7, "mounts": 5,
	}})
}

func TestReal(t *testing.T) {
	m, err := host.Real("/")
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Conformance(t, m, hosttest.Options{Min: map[string]int{"describe": 2, "missing": 12, "mounts": 2, "clock": 2, "run": 3}})
}
