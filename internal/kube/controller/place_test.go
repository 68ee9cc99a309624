package controller

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
)

func TestChoose(t *testing.T) {
	room := func(name string, available, largest uint64) site {
		return site{name: name, room: drivebay.Capacity{Available: available, Largest: largest, Smallest: 1}, whole: true}
	}
	down := site{name: "down", down: "no heartbeat", room: drivebay.Capacity{Available: 100 * gib, Largest: 100 * gib}}
	small, large := room("small", 3*gib, 2*gib), room("large", 9*gib, 8*gib)
	fragmented := room("fragmented", 50*gib, gib/2)
	starting, rest := site{name: "starting"}, room("rest", gib, gib/2) // before its drives are read, and before all are
	rest.whole = false
	for name, c := range map[string]struct {
		sites   []site
		nodes   []string
		refused string
		want    string
		err     error
	}{
		"the most room":           {[]site{small, large}, nil, "", "large", nil},
		"the chosen node":         {[]site{small, large}, []string{"small", "large"}, "", "small", nil},
		"the chosen node is full": {[]site{fragmented, large}, []string{"fragmented", "large"}, "", "large", nil},
		"not in pieces":           {[]site{fragmented, small}, nil, "", "small", nil},
		"not refused twice":       {[]site{small, large}, nil, "large", "small", nil},
		"not down":                {[]site{down, small}, nil, "", "small", nil},
		"down":                    {[]site{down}, nil, "", "", drivebay.ErrUnavailable},
		"full":                    {[]site{fragmented}, nil, "", "", drivebay.ErrNoSpace},
		"drives are not read":     {[]site{starting}, nil, "", "", drivebay.ErrUnavailable},
		"not all drives are read": {[]site{rest, fragmented}, nil, "", "", drivebay.ErrUnavailable},
		"another one is read":     {[]site{starting, small}, nil, "", "small", nil},
		"no nodes":                {nil, nil, "", "", drivebay.ErrUnavailable},
	} {
		got, err := choose(c.sites, requested(c.nodes...), map[string]bool{c.refused: true})
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
