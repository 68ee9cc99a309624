package health

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestFaultsNeverHelp joins any two hand-made drives of a kind: two faults are
// never better than one.
func TestFaultsNeverHelp(t *testing.T) {
	for _, cases := range [][]judged{judgedATA, judgedNVMe, judgedSCSI} {
		for _, a := range cases {
			if a.in.Kernel != nil {
				continue
			}
			base := drivebay.WorstOf(Assess(a.in, Default()))
			for _, k := range judgedKernel {
				in := a.in
				in.Kernel, in.SizeIssue, in.Returns = k.in.Kernel, k.in.SizeIssue, k.in.Returns
				in.History = append(append([]drivebay.Sample(nil), a.in.History...), k.in.History...)
				if got := drivebay.WorstOf(Assess(in, Default())); got.Rank() < base.Rank() || got.Rank() < k.want.Rank() {
					t.Errorf("%s is %v, with kernel %s (%v) it is %v", a.name, base, k.name, k.want, got)
				}
			}
		}
	}
	counts := []uint64{0, 1, 7, 8, 9, 16, 17, 49, 99, 101, 119, 120, 500, 1023, 1100, 1101, 40000, 65535}
	for _, m := range []struct {
		id   uint8
		name string
	}{{5, "Reallocated_Sector_Ct"}, {10, "Spin_Retry_Count"}, {184, "End-to-End_Error"}, {187, "Reported_Uncorrect"}, {197, "Current_Pending_Sector"}, {198, "Offline_Uncorrectable"}} {
		for _, base := range judgedATA {
			if base.in.Evidence.Type != drivebay.TypeHDD {
				continue
			}
			last := good
			for _, n := range counts {
				in := base.in
				ev := *in.Evidence
				a := *ev.ATA
				a.Attributes = append([]drivebay.Attribute{attr(m.id, m.name, n)}, a.Attributes...)
				ev.ATA, in.Evidence = &a, &ev
				got := drivebay.WorstOf(Assess(in, Default()))
				if got.Rank() < last.Rank() {
					t.Errorf("%s with %s %d is %v, with less it was %v", base.name, m.name, n, got, last)
				}
				last = got
			}
		}
	}
}
