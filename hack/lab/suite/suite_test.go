//go:build lab

package suite

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// quick is the configuration of a daemon that asks its drives as often as it may.
const quick = "poll: {evidence: 10s}\n"

// poll is how long the answer to one poll of quick may take to be seen: the poll,
// the tick of two seconds that starts it, and the look on a slow processor.
const poll = (10 + 2 + 2) * time.Second

// soon is how long something may take that no budget bounds: the tests share two
// processors.
const soon = 20 * time.Second

// nvme, scsi ... are drives whose serial number is their id.
func nvme(id string) machine.Drive {
	return machine.Drive{ID: id, Kind: machine.NVMe, Serial: id}
}

func scsi(id string, wwn uint64) machine.Drive {
	return machine.Drive{ID: id, Kind: machine.SCSI, Serial: id, Vendor: "LABVEND", Model: "LABSCSI", WWN: wwn, RPM: 7200}
}

func sata(id string, wwn uint64) machine.Drive {
	return machine.Drive{ID: id, Kind: machine.SATA, Serial: id, Model: "LABDISK", Firmware: "1.2", WWN: wwn, RPM: 7200}
}

// is wants a drive's status.
func is(status drivebay.Status) func(*drivebay.Drive) error {
	return func(d *drivebay.Drive) error {
		if d.Status != status {
			return fmt.Errorf("it is %s, want %s", d.Status, status)
		}
		return nil
	}
}

// few are all of several cases, and with -short (SHORT=1) only the first: for a machine that is too slow for all.
func few[T any](first T, rest ...T) []T {
	if testing.Short() {
		rest = nil
	}
	return append([]T{first}, rest...)
}

// judged wants a verdict on a drive and the finding that led to it.
func judged(h drivebay.Health, code string) func(*drivebay.Drive) error {
	return func(d *drivebay.Drive) error {
		if d.Health != h || !slices.ContainsFunc(d.Findings, func(f drivebay.Finding) bool { return f.Code == code && f.Severity == h }) {
			return fmt.Errorf("it is %s: %s; want %s: %s", d.Health, findings(d), h, code)
		}
		return nil
	}
}

func findings(d *drivebay.Drive) string {
	var out []string
	for _, f := range d.Findings {
		out = append(out, fmt.Sprintf("%s %s (%s)", f.Severity, f.Code, f.Text))
	}
	return strings.Join(out, ", ")
}

// within fails the test when something took longer than it may. The limit is for a
// host that has not more than twice as much to do as it can: beyond that it grows
// with what there is to do, for the machine has to wait for its processor.
func within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	crowd := busy(t)
	may := time.Duration(float64(limit) * max(1, crowd/2))
	t.Logf("%s: %v (<= %v; %v on a host with %.1f times what it can do)", what, took.Round(time.Millisecond), limit, may.Round(time.Millisecond), crowd)
	if took > may {
		t.Errorf("%s took %v, at most %v", what, took, may)
	}
}

// busy is how many times more there is to do on this host than it can, 1 or more:
// the load of the last minute for each processor (proc(5), /proc/loadavg).
func busy(t *testing.T) float64 {
	t.Helper()
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	var load float64
	if _, err := fmt.Sscan(string(b), &load); err != nil {
		t.Fatal(err)
	}
	return max(1, load/float64(runtime.NumCPU()))
}
