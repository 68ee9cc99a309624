package compare

import (
	"encoding/json"
	"fmt"

	"github.com/drivebay/drivebay"
)

// Witness compares a drive with what hack/lab/witness printed about it, fact by fact, and returns how many
// facts were compared.
func Witness(factsJSON []byte, d drivebay.Drive) (compared int, differences []Difference) {
	var facts map[string]string
	if err := json.Unmarshal(factsJSON, &facts); err != nil || len(facts) == 0 {
		return 0, []Difference{{"", fmt.Sprintf("facts (%v)", err), nothing}}
	}
	ours := factsOf(d)
	for name, want := range facts {
		compared++
		got, ok := ours[name]
		if !ok {
			got = nothing
		}
		if got != want {
			differences = append(differences, Difference{"smart.go: " + name, want, got})
		}
	}
	return compared, differences
}

// factsOf returns what we published of a drive, by the names of the witness.
func factsOf(d drivebay.Drive) map[string]string {
	ev := d.Evidence
	if ev == nil {
		return nil
	}
	facts := map[string]string{}
	set := func(name string, value any) { facts[name] = fmt.Sprint(value) }
	set("vendor", d.Vendor)
	set("model", ev.Identity.Model)
	set("serial", ev.Identity.Serial)
	set("firmware", ev.Identity.Firmware)
	set("size", ev.Identity.Size)
	if a := ev.ATA; a != nil {
		for _, row := range a.Attributes {
			at := fmt.Sprintf("attribute %d: ", row.ID)
			set(at+"value", row.Value)
			set(at+"worst", row.Worst)
			set(at+"raw", row.Raw)
			set(at+"prefail", row.Prefail)
			set(at+"threshold", written(told(row.Threshold)))
		}
	}
	if n := ev.NVMe; n != nil {
		set("critical warning", n.CriticalWarning)
		set("temperature", n.TemperatureKelvin)
		set("spare", n.AvailableSpare)
		set("spare threshold", n.SpareThreshold)
		set("used", n.PercentageUsed)
		set("read", n.DataUnitsRead)
		set("written", n.DataUnitsWritten)
		set("power cycles", n.PowerCycles)
		set("power-on hours", n.PowerOnHours)
		set("unsafe shutdowns", n.UnsafeShutdowns)
		set("media errors", n.MediaErrors)
	}
	return facts
}
