package parameters

import (
	"maps"
	"testing"
)

func TestOf(t *testing.T) {
	for _, all := range []map[string]string{
		{Local: "10.0.0.1:7800", Peer: "[fd00::2]:7801", Protocol: "C", Role: "target"},
		{Local: "10.0.0.1:7800", Peer: "10.0.0.2:7800", Protocol: "A", Role: "source", Pair: "shop/data", Rate: "4096"},
	} {
		r, err := Parse(all)
		if err != nil || !maps.Equal(Of(r), all) {
			t.Errorf("%v becomes %v, %v", all, Of(r), err)
		}
	}
}
