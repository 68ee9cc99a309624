package drivemgr_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// endingStreams is a machine whose streams of uevents and kernel log lines a test can end.
type endingStreams struct {
	host.Machine
	uevents chan host.Uevent
	lines   chan host.LogLine
}

func (e endingStreams) Uevents(context.Context) (<-chan host.Uevent, error)    { return e.uevents, nil }
func (e endingStreams) KernelLog(context.Context) (<-chan host.LogLine, error) { return e.lines, nil }

// TestStreamEnds: a stream of the kernel that ends while the manager runs is a problem.
func TestStreamEnds(t *testing.T) {
	var m endingStreams
	as := func(sim *hostsim.Machine) host.Machine {
		m = endingStreams{sim, make(chan host.Uevent), make(chan host.LogLine)}
		return m
	}
	onSeen(t, hostsim.Generate(2), nil, drivemgr.Options{}, as, func(r *rig) {
		problems := func(want ...string) {
			r.Helper()
			time.Sleep(5 * time.Second)
			is := strings.Join(r.mgr.Snapshot().Problems, "; ")
			for _, what := range []string{"no uevents", "no kernel log"} {
				if strings.Contains(is, what) != strings.Contains(strings.Join(want, "; "), what) {
					r.Errorf("problems: %q, want %q", is, want)
				}
			}
		}
		problems()
		close(m.uevents)
		problems("no uevents")
		close(m.lines)
		problems("no uevents", "no kernel log")
	})
}
