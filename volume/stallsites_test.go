//go:build !race && long

package volume_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestStallsAtTwoSites: one operation at one of two sites returns after its caller has gone, while a volume is replicated, fails over, grows and
// fails back. Each call succeeds when it is repeated, also after a restart of that site; the data go with the volume, and nothing is left at the
// end. The cases follow from the seed, as those of TestStalls.
func TestStallsAtTwoSites(t *testing.T) {
	stallCases(t, stallAtTwoSites)
}

func stallAtTwoSites(t *testing.T, random *rand.Rand) {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	kind, encrypted := pick("ext4 on a partition", "xfs on linear", "ext4 on thin", "a mirror"), random.IntN(3) == 0
	of := replicable()
	if r, ok := of["encrypted "+kind]; ok && encrypted {
		of[kind] = r
	}
	r, n, first, then := of[kind], 1+random.IntN(20), random.IntN(2) == 0, pick("again", "again", "restart")
	r.Size.Required = 256 << 20
	onTwoSites(t, volume.Options{Headers: t.TempDir(), Tick: time.Second}, func(a, b *stand, _ func(bool)) {
		defer time.Sleep(time.Hour)
		sites := []*stand{a, b}
		machines := map[*stand]*stalling{a: a.stalls(first), b: b.stalls(first)}
		v := drivebay.Volume{ID: drivebay.VolumeID("v"), Mode: r.Mode()}
		r.Name = "v"
		c := replicationOf(v)
		make := func(s *stand) error { _, err := s.e.CreateVolume(s.Context(), r); return err }
		file := func(name string) func(*stand) error {
			return func(s *stand) error { s.makeFile(s.of(v).Volume, name); return nil }
		}
		files := func(names ...string) func(*stand) error {
			return func(s *stand) error { s.hasFiles(s.of(v).Volume, "", names...); return nil }
		}
		grow := func(s *stand) error {
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 300 << 20})
			return err
		}
		enable := func(s *stand) error {
			if s == a {
				return s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true))
			}
			return s.e.EnableReplication(s.Context(), replicateFrom(v, siteB, siteA, false))
		}
		demote := func(s *stand) error { return s.e.DemoteVolume(s.Context(), c) }
		promote := func(s *stand) error { return s.e.PromoteVolume(s.Context(), c) }
		disable := func(s *stand) error { return s.e.DisableReplication(s.Context(), c) }
		remove := func(s *stand) error { return s.e.DeleteVolume(s.Context(), v.ID) }
		calls := []struct {
			name string
			at   *stand
			do   func(*stand) error
			free bool // of any stall: it is the test's own use
		}{
			{"create", a, make, false}, {"create", b, make, false}, {"use", a, file("before"), true}, {"enable", a, enable, false}, {"enable", b, enable, false},
			{"use", a, files("before"), true}, {"demote", a, demote, false}, {"promote", b, promote, false}, {"use", b, files("before"), true}, {"use", b, file("b"), true},
			{"grow", a, grow, false}, {"grow", b, grow, false}, {"demote", b, demote, false}, {"promote", a, promote, false}, {"use", a, files("before", "b"), true},
			{"disable", b, disable, false}, {"disable", a, disable, false}, {"use", a, files("before", "b"), true}, {"delete", b, remove, false}, {"delete", a, remove, false},
		}
		chosen := random.IntN(len(calls))
		for calls[chosen].free {
			chosen = random.IntN(len(calls))
		}
		for i, call := range calls {
			m := machines[call.at]
			if i == chosen {
				m.arm(n)
				_ = call.do(call.at)
				m.arm(0)
				if then == "restart" {
					time.Sleep(stall)
					call.at.start()
				}
			}
			call.at.eventually(call.name, func() error { return call.do(call.at) })
			time.Sleep(time.Minute)
			if t.Failed() || a.Failed() || b.Failed() {
				a.Fatalf("%s, encrypted: %v; %s, then %s; operation %d, done first: %v, is %q", kind, encrypted, calls[chosen].name, then, n, first, machines[calls[chosen].at].hit)
			}
		}
		time.Sleep(30 * time.Minute)
		for _, s := range sites {
			s.blank()
			s.nothingUnlocked()
		}
		if a.Failed() || b.Failed() {
			a.Fatalf("%s, encrypted: %v; %s, then %s; operation %d, done first: %v, is %q", kind, encrypted, calls[chosen].name, then, n, first, machines[calls[chosen].at].hit)
		}
	})
}
