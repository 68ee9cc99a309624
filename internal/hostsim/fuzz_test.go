package hostsim_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/drivebay/drivebay/internal/hostsim"
)

// FuzzLoad: no description breaks the simulator, and a machine that it takes
// can be listed and closed.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("drives: [{count: 2, kind: nvme, system: true, paths: 2}]"))
	f.Add([]byte("enclosures: [{name: a, kind: ses, bays: 3, first: 9}]\ndrives: [{bays: '9-10,11', kind: sas-ssd, block: 4096}]"))
	if text, err := os.ReadFile("../../examples/rack24.yaml"); err == nil {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := hostsim.Load(text, hostsim.WithClock(hostsim.NewManualClock(start)))
		if err != nil {
			return
		}
		m.View()
		m.Close()
	})
}

// FuzzFault: no request breaks the machine or the drives' pages.
func FuzzFault(f *testing.F) {
	for _, doc := range hostsim.FaultNames() {
		f.Add([]byte(`{"bay":"2","fault":"` + doc.Name + `"}`))
	}
	f.Add([]byte(`{"drive":"nvme0n1","fault":"wear","args":{"percent":255,"spare":"1"}}`))
	f.Add([]byte(`{"bay":"disks/3","fault":"move","args":{"to":"6"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, _ := load(t, small)
		var fault hostsim.Fault
		if json.Unmarshal(body, &fault) != nil || m.Inject(fault) != nil {
			return
		}
		if fault.Fault != "move" { // after it the name leads to another place
			fault.Fault, fault.Args = "heal", nil
			if err := m.Inject(fault); err != nil && fault.Bay != "" {
				t.Errorf("it cannot be healed: %v", err)
			}
		}
	})
}
