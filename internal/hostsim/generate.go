package hostsim

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// Generate returns a machine of n drives for tests and measurements, without faults: a system mirror
// on NVMe inside the case, and bays with one third NVMe, one third SATA and one third SAS.
func Generate(n int) Spec {
	s := Spec{Machine: fmt.Sprintf("rack%d", n)}
	system := min(n, 2)
	s.Drives = append(s.Drives, block.Group{Count: system, Kind: model.KindNVMe, Model: "Micron_7450_MTFDKBA480TFR", Size: "480GB", Serial: "SYS{n}", System: true})
	n -= system
	bay := 0
	for _, r := range []struct {
		row    model.EnclosureKind
		kind   model.Kind
		drives int
	}{{model.EnclosurePCI, model.KindNVMe, n / 3}, {model.EnclosureSES, model.KindSATAHDD, n / 3}, {model.EnclosureSES, model.KindSASHDD, n - 2*(n/3)}} {
		for first := 0; first < r.drives; first += 24 {
			some := min(24, r.drives-first)
			name := fmt.Sprintf("%s-%d", r.kind, first/24)
			s.Enclosures = append(s.Enclosures, block.Enclosure{Name: name, Kind: r.row, Bays: some, First: bay})
			s.Drives = append(s.Drives, block.Group{Enclosure: name, Bays: fmt.Sprintf("%d-%d", bay, bay+some-1), Kind: r.kind})
			bay += some
		}
	}
	return s
}
