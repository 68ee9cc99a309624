//go:build lab

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabLink: two machines with a cable between them; cut, nothing passes, mended
// it does again, and what was under way arrives.
func TestLabLink(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	a := lab.Start(t, machine.Spec{Link: cable})
	b := lab.Start(t, machine.Spec{Link: cable})
	ping := func() bool {
		return strings.Contains(a.Sh("ping -c 1 -W 1 10.77.0.2 2>&1 || true"), " 0% packet loss")
	}
	if !ping() {
		t.Fatalf("the machines do not see each other: %s", a.Sh("ip addr; dmesg | tail -5"))
	}
	a.Must(a.SetLink(t.Context(), false))
	if ping() {
		t.Error("a ping passes through a cut cable")
	}
	if state := a.Sh("cat /sys/class/net/e*/carrier"); state != "0" {
		t.Errorf("the cut end has carrier %s", state)
	}
	a.Must(a.SetLink(t.Context(), true))
	for end := time.Now().Add(10 * time.Second); !ping(); {
		if time.Now().After(end) {
			t.Fatalf("no ping passes through the mended cable: %s", b.Sh("ip addr"))
		}
	}
}
