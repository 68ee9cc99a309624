package controller

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestLateRenewal: a controller that the API server did not reach for a while gets the renewals of that time at once. They are from
// before, and say nothing of the node now: it counts as down, and a volume whose object was deleted meanwhile may exist.
func TestLateRenewal(t *testing.T) {
	const every, away = 10 * time.Second, 10 * time.Minute
	for name, reconnect := range map[string]func(n *nodes, first time.Time){
		"list": func(n *nodes, first time.Time) { _ = n.Replace([]any{lease("a", first.Add(every))}, "") },
		"watch": func(n *nodes, first time.Time) {
			_ = n.Update(lease("a", first))
			_ = n.Update(lease("a", first.Add(every)))
		},
	} {
		for _, skew := range []time.Duration{0, time.Hour, -time.Hour} { // of the clock of the node
			now := time.Unix(1_000_000, 0)
			c, _ := leadingOver(t)
			c.nodes = newNodes(slog.New(slog.DiscardHandler))
			n := c.nodes
			n.now = func() time.Time { return now }
			_ = n.Replace([]any{lease("a", now.Add(skew))}, "")
			for range 3 {
				now = now.Add(every)
				_ = n.Update(lease("a", now.Add(skew)))
			}
			n.look()
			if why := n.down("a"); why != "" {
				t.Fatalf("%s, clock %v: before: %s", name, skew, why)
			}
			last := now
			now = now.Add(away) // the node renews its Lease twice, and dies
			deleted := now.Add(-3 * time.Second)
			reconnect(n, last.Add(every+skew))
			n.look()
			if n.down("a") == "" || n.silentOn("a", deleted) == "" {
				t.Errorf("%s, clock %v: a node that died %v ago counts as up", name, skew, away-2*every)
			}
			if err := c.Missing(drivebay.VolumeID("x")); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("%s, clock %v: a volume that may be on that node: %v", name, skew, err)
			}
			for i := range 3 { // it comes back, with another clock
				now = now.Add(every)
				_ = n.Update(lease("a", now.Add(-24*time.Hour)))
				if n.look(); i > 0 && n.down("a") != "" {
					t.Errorf("%s, clock %v: back: %s", name, skew, n.down("a"))
				}
			}
		}
	}
}
