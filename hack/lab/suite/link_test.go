//go:build lab

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabLink: three machines with cables to one switch. Cut, nothing passes; mended it does again. A frame that is
// lost in one direction still arrives in the other. A machine whose power was cut has its cable when it is back.
func TestLabLink(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	a := lab.Start(t, machine.Spec{Link: cable})
	b := lab.Start(t, machine.Spec{Link: cable})
	c := lab.Start(t, machine.Spec{Link: cable})
	ping := func(m *lab.Machine, to int) bool {
		return strings.Contains(m.Sh("ping -c 1 -W 1 10.77.0.%d 2>&1 || true", to), " 0% packet loss")
	}
	until := func(m *lab.Machine, to int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ping(m, to); {
			if time.Now().After(end) {
				t.Fatalf("no ping passes to 10.77.0.%d: %s", to, m.Sh("ip addr; ip neigh; dmesg | tail -5"))
			}
		}
	}
	for _, to := range []int{2, 3} {
		until(a, to)
	}
	a.Must(a.SetLink(t.Context(), false))
	if ping(a, 2) {
		t.Error("a ping passes through a cut cable")
	}
	if state := a.Sh("cat /sys/class/net/e*/carrier"); state != "0" {
		t.Errorf("the cut end has carrier %s", state)
	}
	if !ping(b, 3) || !ping(c, 2) {
		t.Error("the cut cable of a machine ends the network of the others")
	}
	a.Must(a.SetLink(t.Context(), true))
	until(a, 2)

	seen := func() string { return a.Sh("cat /sys/class/net/e*/statistics/rx_packets") }
	cable.Lose(1, 2, true)
	before := seen()
	if ping(b, 1) {
		t.Error("an answer arrives that the switch was to lose")
	}
	if seen() == before {
		t.Error("nothing arrives in the direction that is open")
	}
	cable.Lose(1, 2, false)
	until(b, 1)

	a.PowerCut()
	if ping(b, 1) {
		t.Error("a machine without power answers")
	}
	a.Must(a.Boot(t.Context()))
	until(b, 1)
	if have := a.Sh("ip -o -4 addr show | grep -o '10.77.0.[0-9]*/24'"); have != "10.77.0.1/24" {
		t.Errorf("after the boot it has %s", have)
	}
}
