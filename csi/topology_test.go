package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

// cluster has nodes, and room on each.
type cluster struct {
	Cluster
	names []string
}

func (c cluster) Nodes() ([]string, error) { return c.names, nil }

func (cluster) CapacityOn(_ context.Context, _ drivebay.Class, nodes []string) (drivebay.Capacity, error) {
	return drivebay.Capacity{Available: uint64(len(nodes))}, nil
}

func at(node string) *wire.Topology {
	return &wire.Topology{Segments: map[string]string{TopologyKey: node}}
}

// TestReaches: the nodes of a request, the best first.
func TestReaches(t *testing.T) {
	long := fmt.Sprintf("%0200d", 1) // not legal in a topology: its hash stands for it
	s := &Server{opt: Options{Cluster: cluster{names: []string{"a", "b", "c", long}}}}
	for name, c := range map[string]struct {
		r    *wire.TopologyRequirement
		want []string
		err  error
	}{
		"none":                     {nil, []string{"a", "b", "c", long}, nil},
		"empty":                    {&wire.TopologyRequirement{}, nil, drivebay.ErrInvalid},
		"one":                      {&wire.TopologyRequirement{Requisite: []*wire.Topology{at("b")}}, []string{"b"}, nil},
		"other case":               {&wire.TopologyRequirement{Requisite: []*wire.Topology{at("B")}}, []string{"b"}, nil},
		"the chosen node first":    {&wire.TopologyRequirement{Requisite: []*wire.Topology{at("a"), at("b"), at("c")}, Preferred: []*wire.Topology{at("c"), at("a")}}, []string{"c", "a", "b"}, nil},
		"preferred only":           {&wire.TopologyRequirement{Preferred: []*wire.Topology{at("c")}}, []string{"c", "a", "b", long}, nil},
		"preferred, not requisite": {&wire.TopologyRequirement{Requisite: []*wire.Topology{at("a")}, Preferred: []*wire.Topology{at("c")}}, nil, drivebay.ErrInvalid},
		"not known":                {&wire.TopologyRequirement{Requisite: []*wire.Topology{at("x")}}, nil, drivebay.ErrNoSpace},
		"one of them known":        {&wire.TopologyRequirement{Requisite: []*wire.Topology{at("x"), at("b")}}, []string{"b"}, nil},
		"a long name":              {&wire.TopologyRequirement{Requisite: []*wire.Topology{topologyOf(long)}}, []string{long}, nil},
		"another key":              {&wire.TopologyRequirement{Requisite: []*wire.Topology{{Segments: map[string]string{"zone": "a"}}}}, nil, drivebay.ErrNoSpace},
		"and another key":          {&wire.TopologyRequirement{Requisite: []*wire.Topology{{Segments: map[string]string{"zone": "1", TopologyKey: "a"}}}}, nil, drivebay.ErrNoSpace},
	} {
		if got, err := s.reaches(c.r); !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestClusterCapacity: the capacity of a topology is that of the nodes inside it.
func TestClusterCapacity(t *testing.T) {
	c := newController(New(nil, Options{Cluster: cluster{names: []string{"a", "b"}}}))
	for name, q := range map[string]struct {
		in   *wire.Topology
		want int64
	}{"everywhere": {nil, 2}, "one node": {at("a"), 1}, "elsewhere": {at("x"), 0}} {
		got, err := c.GetCapacity(t.Context(), &wire.GetCapacityRequest{AccessibleTopology: q.in})
		if err != nil || got.AvailableCapacity != q.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// unlisted is a cluster whose nodes are not known yet.
type unlisted struct{ cluster }

func (unlisted) Nodes() ([]string, error) { return nil, drivebay.ErrUnavailable }

// TestNodesNotListed: before the nodes of a cluster are known, it is not said that there is no room.
func TestNodesNotListed(t *testing.T) {
	c := newController(New(nil, Options{Cluster: unlisted{}}))
	for _, in := range []*wire.Topology{nil, at("a")} {
		if got, err := c.GetCapacity(t.Context(), &wire.GetCapacityRequest{AccessibleTopology: in}); !errors.Is(err, drivebay.ErrUnavailable) {
			t.Errorf("capacity: %v, %v", got, err)
		}
	}
	if got, err := c.reaches(&wire.TopologyRequirement{Requisite: []*wire.Topology{at("a")}}); !errors.Is(err, drivebay.ErrUnavailable) {
		t.Errorf("reaches: %v, %v", got, err)
	}
}
