// Command bench measures the budgets of the design and prints them as a table.
// It runs bin/drivebay on a simulated machine of 100 drives; build that first.
//
//	make bench
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// row is one budget and its measurement.
type row struct {
	what, target, measured string
	kept                   bool
}

func main() {
	binary := flag.String("binary", "bin/drivebay", "the program to measure")
	fleet := flag.String("fleet", "../shared/corpus/fleet-x.jsonl.gz", "recorded fleet to judge; left out when it is not there")
	real := flag.Bool("real", false, "measure the listing of this machine's own drives instead")
	only := flag.String("only", "", "measure only the parts with this in their name")
	kubeconfig := flag.String("kubeconfig", "", "of an API server that gets the objects of the daemon on loop devices (with -only loop)")
	flag.Parse()
	debug.SetGCPercent(400) // the callers are in this process: each of their connections is garbage, and its collection is not what is measured
	var rows []row
	var err error
	if *real {
		rows, err = realRows()
	} else {
		rows, err = measure(*binary, *fleet, *only, *kubeconfig)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tTARGET\tMEASURED\t")
	for _, r := range rows {
		verdict := "ok"
		if !r.kept {
			verdict = "OVER"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.target, r.measured, verdict)
	}
	w.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// part is a measurement of some rows.
type part struct {
	name    string
	measure func() ([]row, error)
}

// measure runs the parts whose name contains only, one after the other, and prints which
// one runs: all of them take some minutes.
func measure(binary, fleet, only, kubeconfig string) (rows []row, err error) {
	cold := func(hung int) func() ([]row, error) {
		return func() ([]row, error) {
			r, err := coldStart(binary, hung)
			return []row{r}, err
		}
	}
	parts := []part{{"listing", inProcess}, {"cold start", cold(0)}, {"cold start with 5 hung drives", cold(5)}, {"daemon", func() ([]row, error) { return daemonRows(binary) }},
		{"stats", statsRows}, {"memory of volumes", costRows}, {"lists", listRows}, {"loop devices", func() ([]row, error) { return loopRows(binary, kubeconfig) }}}
	if _, err := os.Stat(fleet); err == nil {
		parts = append(parts, part{"fleet", func() ([]row, error) {
			r, err := assess(binary, fleet)
			return []row{r}, err
		}})
	} else {
		fmt.Fprintln(os.Stderr, "bench: no fleet to judge:", err)
	}
	for _, p := range parts {
		if !strings.Contains(p.name, only) {
			continue
		}
		began := time.Now()
		fmt.Fprintf(os.Stderr, "bench: %s", p.name)
		more, err := p.measure()
		fmt.Fprintf(os.Stderr, " (%.0f s)\n", time.Since(began).Seconds())
		if rows = append(rows, more...); err != nil {
			return rows, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return rows, nil
}

// inProcess measures the drive engine without a daemon.
func inProcess() ([]row, error) {
	sim, err := hostsim.New(hostsim.Generate(100))
	if err != nil {
		return nil, err
	}
	defer sim.Close()
	mounts, err := sim.Mounts(context.Background())
	if err != nil {
		return nil, err
	}
	rescan := medianOf(50, func() { drivemgr.List(sim, mounts) })
	s, err := drivemgr.ReadOnce(context.Background(), sim, drivemgr.Options{})
	if err != nil {
		return nil, err
	}
	tick := medianOf(50, func() {
		for i := range s.Drives {
			drivemgr.ReadKernel(sim, &s.Drives[i], s.Drives[i].Kernel, sim.Now())
		}
	})
	runs := sim.Stats().Runs
	return []row{
		{"rescan of 100 drives", "<= 25 ms", ms(rescan), rescan <= 25*time.Millisecond},
		{"kernel evidence of 100 drives, one tick", "-", ms(tick), true},
		{"programs run by listing, looking and ticking", "0", fmt.Sprint(runs), runs == 0},
	}, nil
}

func medianOf(n int, f func()) time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		f()
		took[i] = time.Since(began)
	}
	return percentile(took, 50)
}

func percentile(d []time.Duration, p int) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, len(d)*p/100)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
