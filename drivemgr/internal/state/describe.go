package state

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// SamePlace reports whether the kernel shows two drives at the same place.
func SamePlace(a, b *drivebay.Drive) bool {
	return len(a.Paths) > 0 && len(b.Paths) > 0 && a.Paths[0].SysPath != "" && a.Paths[0].SysPath == b.Paths[0].SysPath
}

// Changes returns the differences between two listings of one drive as events.
func Changes(old, d *drivebay.Drive, now time.Time) []drivebay.Event {
	var out []drivebay.Event
	add := func(kind drivebay.EventKind, from, to, cause string) {
		out = append(out, drivebay.Event{At: now, Kind: kind, Drive: d.ID, From: from, To: to, Cause: cause})
	}
	if old.Status == drivebay.StatusOffline {
		add(drivebay.EventReturned, "OFFLINE", "ONLINE", "back: "+Describe(d))
	}
	if old.Size != d.Size && old.Size > 0 && d.Size > 0 {
		add(drivebay.EventResized, fmt.Sprint(old.Size), fmt.Sprint(d.Size), fmt.Sprintf("%d bytes, before %d bytes: %s", d.Size, old.Size, Describe(d)))
	}
	if old.Name == NoName {
		return out
	}
	if old.Name != d.Name {
		add(drivebay.EventRenamed, old.Name, d.Name, "the kernel has given the drive another name: "+Describe(d))
	}
	if inventory.Place(old) != inventory.Place(d) && inventory.Place(d) != "" {
		add(drivebay.EventMoved, inventory.Place(old), inventory.Place(d), "moved: "+Describe(d))
	}
	if old.IdentityIssue != d.IdentityIssue {
		cause := d.IdentityIssue
		if cause == "" {
			cause = "the identity conflict has ended"
		}
		add(drivebay.EventIdentity, old.ID, d.ID, cause)
	}
	return out
}

// FillIdentity completes what sysfs truncates with the drive's own identity data.
func FillIdentity(d *drivebay.Drive) {
	if d.Evidence == nil {
		return
	}
	said := d.Evidence.Identity
	said.WWN = sysfs.UsableWWN(said.WWN)
	if len(said.Model) > len(d.Model) { // sysfs keeps 16 characters of an ATA model
		d.Model = said.Model
	}
	for _, f := range []struct{ have, said *string }{{&d.Serial, &said.Serial}, {&d.Firmware, &said.Firmware}, {&d.Vendor, &said.Vendor}, {&d.WWN, &said.WWN}} {
		if *f.have == "" {
			*f.have = *f.said
		}
	}
	if d.RPM == 0 {
		d.RPM = said.RPM
	}
	if d.Type == drivebay.TypeUnknown {
		d.Type = d.Evidence.Type
	}
}

// NoName is the name of a drive of which only the id is known.
const NoName = "unknown"

// Describe names a drive by kernel name, model, serial and bay, so that an operator finds it.
func Describe(d *drivebay.Drive) string {
	text := d.Name
	for _, f := range []struct{ word, value string }{{"", d.Vendor}, {"", d.Model}, {"serial ", d.Serial}, {"bay ", d.Slot.Bay}} {
		if f.value != "" {
			text += ", " + f.word + f.value
		}
	}
	return text
}
