package drivebay_test

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

func usable() drivebay.Drive {
	return drivebay.Drive{Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse,
		Identity: drivebay.Identity{Size: 1 << 40}, Content: drivebay.Content{Kind: drivebay.ContentBlank}}
}

// Each thing that forbids writing is told alone, and a drive about which nothing
// is known is refused for everything.
func TestRefusals(t *testing.T) {
	good := usable()
	if r := good.Refusals(); len(r) > 0 {
		t.Errorf("a blank drive is refused: %q", r)
	}
	ours := usable()
	ours.Content.Kind = drivebay.ContentOurs
	ours.Uses = []drivebay.Use{{Kind: "partition", Device: "sda1", Ours: true}, {Kind: "mount", Device: "sda1", What: "/srv", Ours: true}}
	if r := ours.Refusals(); len(r) > 0 {
		t.Errorf("a drive of our own is refused: %q", r)
	}
	for want, change := range map[string]func(*drivebay.Drive){
		"its status is OFFLINE":              func(d *drivebay.Drive) { d.Status = drivebay.StatusOffline },
		"its status is UNKNOWN":              func(d *drivebay.Drive) { d.Status = drivebay.StatusUnknown },
		"distinguished from others: twins":   func(d *drivebay.Drive) { d.IdentityIssue = "twins" },
		"the machine runs from this drive":   func(d *drivebay.Drive) { d.System = true },
		"write-protected":                    func(d *drivebay.Drive) { d.ReadOnly = true },
		"size is unknown":                    func(d *drivebay.Drive) { d.Size = 0 },
		"its usage is RELEASING, not IN_USE": func(d *drivebay.Drive) { d.Usage = drivebay.UsageReleasing },
		"mount of sda1, /srv":                func(d *drivebay.Drive) { d.Uses = []drivebay.Use{{Kind: "mount", Device: "sda1", What: "/srv"}} },
		"foreign content: gpt, x":            func(d *drivebay.Drive) { d.Content = foreign("gpt", "xfs") },
		"was not read yet":                   func(d *drivebay.Drive) { d.Content = drivebay.Content{} },
		"cannot be read: short read":         func(d *drivebay.Drive) { d.Content = drivebay.Content{Reason: "short read"} },
		"foreign content":                    func(d *drivebay.Drive) { d.Content = drivebay.Content{Kind: drivebay.ContentForeign} },
	} {
		d := usable()
		change(&d)
		if r := d.Refusals(); len(r) != 1 || !strings.Contains(r[0], want) {
			t.Errorf("want one refusal with %q, got %q", want, r)
		}
	}
	if r := new(drivebay.Drive).Refusals(); len(r) < 4 {
		t.Errorf("of nothing known: %q", r)
	}
}

func foreign(formats ...string) drivebay.Content {
	c := drivebay.Content{Kind: drivebay.ContentForeign}
	for _, f := range formats {
		c.Signatures = append(c.Signatures, drivebay.Signature{Format: f})
	}
	return c
}

func TestSelectors(t *testing.T) {
	nvme := usable()
	nvme.Type, nvme.Transport, nvme.Model, nvme.Serial = drivebay.TypeNVMe, drivebay.TransportNVMe, "SAMSUNG MZQL2", "S64H1"
	nvme.Size, nvme.Slot = 3_840_755_982_336, drivebay.Slot{Bay: "Slot 07", Enclosure: "shelf"}
	for text, want := range map[string]bool{
		"": false, "all": true, "type=nvme": true, "type=NVME,model=samsung*": true, "type=ssd": false,
		"type=ssd; serial=S64H?": true, "size>=3.84TB": true, "size>=4TB": false, "size<=3.5TiB": true, "size<=3840755982336": true,
		"transport=nvme,size>=1TB,size<=2TB": false, "bay=Slot 0[1-9]": true, "enclosure=shel?,bay=Slot 07": true, "vendor=": false,
	} {
		var s drivebay.Selectors
		err := s.UnmarshalText([]byte(text))
		if text == "vendor=" {
			if err == nil {
				t.Errorf("%q: a term without a value was taken", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := s.Match(&nvme); got != want {
			t.Errorf("%q matches: %v", text, got)
		}
		b, _ := s.MarshalText()
		var again drivebay.Selectors
		if err := again.UnmarshalText(b); err != nil || again.Match(&nvme) != want {
			t.Errorf("%q is written as %q, which reads as %v, %v", text, b, again, err)
		}
	}
	for _, text := range []string{"nvme", "colour=red", "type>=nvme", "size>=big", "size>=-1", "size>=NaN", "size>=1e400", "size=1TB", "model=[", ";", "all,type=nvme", "type=nvme;"} {
		if err := new(drivebay.Selectors).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	var unknown drivebay.Drive
	var small drivebay.Selectors
	if err := small.UnmarshalText([]byte("size<=1TB")); err != nil || small.Match(&unknown) {
		t.Error("a drive of unknown size is small")
	}
}

func FuzzSelectors(f *testing.F) {
	f.Add("type=nvme,size>=1TB; all")
	f.Fuzz(func(t *testing.T, text string) {
		var s drivebay.Selectors
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		d := usable()
		want := s.Match(&d)
		b, err := s.MarshalText()
		var again drivebay.Selectors
		if err != nil || again.UnmarshalText(b) != nil || again.Match(&d) != want {
			t.Errorf("%q is written as %q, which reads otherwise", text, b)
		}
	})
}
