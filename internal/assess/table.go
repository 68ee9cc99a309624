package assess

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/drivebay/drivebay"
)

// Table counts verdicts by type of drive, the drive's own verdict and the verdict of drivebay.
type Table struct {
	counts map[cell]int
	Errors int // documents that could not be read
}

type cell struct {
	kind drivebay.Type
	own  drivebay.Verdict
	ours drivebay.Health
}

// Add counts one verdict.
func (t *Table) Add(v Verdict) {
	if v.Err != nil {
		t.Errors++
		return
	}
	if t.counts == nil {
		t.counts = map[cell]int{}
	}
	t.counts[cell{v.Type, v.Own, v.Health}]++
}

// Count returns the number of drives of the type with both verdicts.
func (t *Table) Count(kind drivebay.Type, own drivebay.Verdict, ours drivebay.Health) int {
	return t.counts[cell{kind, own, ours}]
}

// Flagged returns the number of drives of the type with the own verdict that are SUSPECT or BAD,
// and the number of all of them.
func (t *Table) Flagged(kind drivebay.Type, own drivebay.Verdict) (flagged, total int) {
	for c, n := range t.counts {
		if c.kind != kind || c.own != own {
			continue
		}
		total += n
		if c.ours == drivebay.HealthSuspect || c.ours == drivebay.HealthBad {
			flagged += n
		}
	}
	return flagged, total
}

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "type\tits own verdict\tdrives\tGOOD\tSUSPECT\tBAD\tUNKNOWN\tflagged\t")
	for _, kind := range []drivebay.Type{drivebay.TypeHDD, drivebay.TypeSSD, drivebay.TypeNVMe, drivebay.TypeUnknown} {
		for _, own := range []drivebay.Verdict{drivebay.VerdictPassed, drivebay.VerdictFailed, drivebay.VerdictUnknown} {
			flagged, total := t.Flagged(kind, own)
			if total == 0 {
				continue
			}
			fmt.Fprintf(tw, "%v\t%v\t%d\t", kind, own, total)
			for _, h := range []drivebay.Health{drivebay.HealthGood, drivebay.HealthSuspect, drivebay.HealthBad, drivebay.HealthUnknown} {
				fmt.Fprintf(tw, "%d\t", t.Count(kind, own, h))
			}
			fmt.Fprintf(tw, "%.2f %%\t\n", 100*float64(flagged)/float64(total))
		}
	}
	if t.Errors > 0 {
		fmt.Fprintf(tw, "unreadable\t\t%d\t\t\t\t\t\t\n", t.Errors)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("fleet table: %w", err)
	}
	return nil
}
