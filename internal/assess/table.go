package assess

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/drivebay/drivebay"
)

// Table counts verdicts by type of drive, the drive's own verdict and the verdict of drivebay.
type Table struct {
	counts  map[cell]int
	classes map[classCell]int
	Errors  int // documents that could not be read
}

type classCell struct {
	class string
	ours  drivebay.Health
}

type cell struct {
	kind drivebay.Type
	own  drivebay.Verdict
	ours drivebay.Health
	worn bool // WearUsed is one of its findings
}

// Add counts one verdict.
func (t *Table) Add(v Verdict) {
	if v.Err != nil {
		t.Errors++
		return
	}
	if t.counts == nil {
		t.counts, t.classes = map[cell]int{}, map[classCell]int{}
	}
	for _, c := range v.classes {
		t.classes[classCell{c, v.Health}]++
	}
	worn := slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.Code == "WearUsed" })
	t.counts[cell{v.Type, v.Own, v.Health, worn}]++
}

// Count returns the number of drives of the type with both verdicts.
func (t *Table) Count(kind drivebay.Type, own drivebay.Verdict, ours drivebay.Health) int {
	return t.counts[cell{kind, own, ours, false}] + t.counts[cell{kind, own, ours, true}]
}

// Flagged returns the number of drives of the type with the own verdict that are SUSPECT or BAD, the
// number of all of them, both without the worn ones, and the number of those.
func (t *Table) Flagged(kind drivebay.Type, own drivebay.Verdict) (flagged, total, worn int) {
	for c, n := range t.counts {
		if c.kind != kind || c.own != own {
			continue
		}
		if c.worn {
			worn += n
			continue
		}
		total += n
		if c.ours == drivebay.HealthSuspect || c.ours == drivebay.HealthBad {
			flagged += n
		}
	}
	return flagged, total, worn
}

// Class returns the number of drives with a class of evidence and a verdict.
func (t *Table) Class(class string, ours drivebay.Health) int {
	return t.classes[classCell{class, ours}]
}

// Write prints the numbers by type and by class of evidence.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "type\tits own verdict\tdrives\tGOOD\tSUSPECT\tBAD\tUNKNOWN\tworn\tflagged of the others\t")
	for _, kind := range []drivebay.Type{drivebay.TypeHDD, drivebay.TypeSSD, drivebay.TypeNVMe, drivebay.TypeUnknown} {
		for _, own := range []drivebay.Verdict{drivebay.VerdictPassed, drivebay.VerdictFailed, drivebay.VerdictUnknown} {
			flagged, total, worn := t.Flagged(kind, own)
			if total+worn == 0 {
				continue
			}
			fmt.Fprintf(tw, "%v\t%v\t%d\t", kind, own, total+worn)
			for _, h := range verdicts {
				fmt.Fprintf(tw, "%d\t", t.Count(kind, own, h))
			}
			fmt.Fprintf(tw, "%d\t%.2f %%\t\n", worn, 100*float64(flagged)/float64(max(total, 1)))
		}
	}
	if t.Errors > 0 {
		fmt.Fprintf(tw, "unreadable\t\t%d\t\t\t\t\t\t\t\n", t.Errors)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("fleet table: %w", err)
	}
	return t.writeClasses(w)
}

func (t *Table) writeClasses(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\nevidence\tGOOD\tSUSPECT\tBAD\tUNKNOWN\t")
	for _, c := range classes {
		fmt.Fprintf(tw, "%s\t", c.name)
		for _, h := range verdicts {
			fmt.Fprintf(tw, "%d\t", t.Class(c.name, h))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("fleet table: %w", err)
	}
	return nil
}

var verdicts = []drivebay.Health{drivebay.HealthGood, drivebay.HealthSuspect, drivebay.HealthBad, drivebay.HealthUnknown}
