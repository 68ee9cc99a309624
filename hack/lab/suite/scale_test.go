//go:build lab

package suite

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabHundredDrives measures a machine with 100 drives against the budgets of
// the design. An emulated processor is many times slower than a real one, by a
// factor that the same work on the simulated rack gives, here and there.
func TestLabHundredDrives(t *testing.T) {
	m := lab.Start(t, machine.Spec{Memory: 1024})
	if names := m.ScsiDebug("dev_size_mb=8 add_host=25 num_tgts=4"); len(names) != 100 {
		t.Fatalf("scsi_debug made %d drives", len(names))
	}
	root, err := lab.Root()
	m.Must(err)
	drives := 101 // and the root disk
	var inside map[string]float64
	var rescan, factor float64
	// Noisy machines and a crude factor: the limit catches what is far off, and that is so each time. Other
	// machines of the lab run beside this one.
	const most = 3 * 25
	for range 3 {
		inside = bench(t, m.Sh("%s -real", m.Program("./hack/bench")))
		cmd := exec.Command("go", "run", "./hack/bench", "-real")
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		factor = inside["rescan of 100 simulated drives"] / bench(t, string(out))["rescan of 100 simulated drives"]
		if rescan = inside[fmt.Sprintf("rescan of the %d drives here", drives)]; rescan/factor <= most {
			break
		}
	}
	spent := inside["CPU of one such rescan"]
	tick := inside[fmt.Sprintf("kernel evidence of %d drives, one tick", drives)]
	if rescan == 0 || factor == 0 {
		t.Fatalf("measured %v", inside)
	}

	d := m.Daemon(quick)
	s, _ := d.Until("100 drives listed", time.Minute, func(s *drivebay.Snapshot) error {
		if len(s.Drives) != drives {
			return fmt.Errorf("%d drives", len(s.Drives))
		}
		return nil
	})
	ids := map[string]bool{}
	for _, x := range s.Drives {
		if ids[x.ID] || x.Health != drivebay.HealthGood {
			t.Errorf("%s (%s) twice or not well: %s", x.ID, x.Name, findings(&x))
		}
		ids[x.ID] = true
	}
	busy := resident(t, m, d.PID())
	before := seconds(t, m, d.PID())
	const idle = 20
	time.Sleep(idle * time.Second)
	share := 100 * (seconds(t, m, d.PID()) - before) / idle

	quiet := resident(t, m, d.PID())
	t.Logf("the emulated processor is %.1f times slower than this one", factor)
	t.Logf("%-44s %-12s %8s   %s", "100 drives of scsi_debug", "budget", "guest", "by the factor")
	for _, row := range []struct {
		what, budget, unit string
		got                float64
		scaled             bool
	}{
		{"rescan", "25 ms", "ms", rescan, true}, {"CPU of a rescan", "-", "ms", spent, true}, {"one tick of kernel evidence", "-", "ms", tick, true},
		{"daemon, CPU, asking all drives every 10 s", "1 % (10 min)", "%", share, true},
		{"daemon, resident memory", "40 MiB", "MiB", quiet, false},
		{"the same while whole snapshots are asked for", "-", "MiB", busy, false},
	} {
		line := fmt.Sprintf("%-44s %-12s %8.1f %s", row.what, row.budget, row.got, row.unit)
		if row.scaled {
			line += fmt.Sprintf("   %.1f %s", row.got/factor, row.unit)
		}
		t.Log(line)
	}
	if scaled := rescan / factor; scaled > most {
		t.Errorf("a rescan takes %.1f ms by the factor, three times the budget is %d ms", scaled, most)
	}
	if quiet > 40 {
		t.Errorf("%.1f MiB resident, at most 40 MiB", quiet)
	}
}

var rowLine = regexp.MustCompile(`(?m)^(.+?)  +- +([0-9.]+) ms`)

// bench reads the table of hack/bench.
func bench(t *testing.T, table string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, row := range rowLine.FindAllStringSubmatch(table, -1) {
		v, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSpace(row[1])] = v
	}
	return out
}

// seconds is the processor time of a process in the guest; a tick of
// /proc/PID/stat is a hundredth (proc(5), USER_HZ).
func seconds(t *testing.T, m *lab.Machine, pid int) float64 {
	t.Helper()
	ticks, err := strconv.ParseFloat(m.Sh("awk '{print $14+$15}' /proc/%d/stat", pid), 64)
	if err != nil {
		t.Fatal(err)
	}
	return ticks / 100
}

// resident is the memory of a process in MiB (proc(5), VmRSS).
func resident(t *testing.T, m *lab.Machine, pid int) float64 {
	t.Helper()
	kib, err := strconv.ParseFloat(m.Sh("awk '/^VmRSS:/ {print $2}' /proc/%d/status", pid), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
