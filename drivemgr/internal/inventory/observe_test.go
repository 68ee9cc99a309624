package inventory

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

// listTree lists the drives of the tree, by name.
func listTree(tb testing.TB, t hosttest.Tree, opt Options, mounts ...host.Mount) (Listing, map[string]drivebay.Drive) {
	tb.Helper()
	l := Observe(t.Machine(tb), mounts, opt)
	checkListing(tb, l)
	return l, byName(l)
}

func byName(l Listing) map[string]drivebay.Drive {
	m := map[string]drivebay.Drive{}
	for _, d := range l.Drives {
		m[d.Name] = d
	}
	return m
}

// uses are the uses of a drive, as kind:device:what.
func uses(d drivebay.Drive) string {
	var out []string
	for _, u := range d.Uses {
		out = append(out, strings.TrimRight(u.Kind+":"+u.Device+":"+u.What, ":"))
	}
	return strings.Join(out, " ")
}

func names(l Listing) string {
	var out []string
	for _, d := range l.Drives {
		out = append(out, d.Name)
	}
	return strings.Join(out, " ")
}
