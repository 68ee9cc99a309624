package csi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

// legalSegment matches legal values of a topology (spec.md, message Topology).
var legalSegment = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// segment returns the value of a node in a topology: its name, or the hash of a name that is not
// legal there, for example because it is too long.
func segment(node string) string {
	if legalSegment.MatchString(node) {
		return node
	}
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:16])
}

func topologyOf(node string) *wire.Topology {
	return &wire.Topology{Segments: map[string]string{TopologyKey: segment(node)}}
}

// nodes returns the nodes on which the controller service makes volumes, an error before they are known.
func (s *Server) nodes() ([]string, error) {
	if s.opt.Cluster != nil {
		return s.opt.Cluster.Nodes()
	}
	return []string{s.opt.NodeID}, nil
}

// inside returns the nodes of an index that are inside a topology. Keys are case-insensitive; a key
// other than TopologyKey describes no place that this plugin knows.
func (x places) inside(t *wire.Topology) []string {
	if len(t.GetSegments()) == 0 {
		return x.all
	}
	var found []string
	for key, value := range t.GetSegments() {
		node, known := x.bySegment[strings.ToLower(value)] // earlier versions sent the name in its original case
		if !strings.EqualFold(key, TopologyKey) || !known || found != nil && found[0] != node {
			return nil
		}
		found = []string{node}
	}
	return found
}

// places are nodes by the values that they have in a topology, in lower case.
type places struct {
	all       []string
	bySegment map[string]string
}

func (s *Server) places() (places, error) {
	all, err := s.nodes()
	x := places{all: all, bySegment: map[string]string{}}
	for _, node := range x.all {
		x.bySegment[strings.ToLower(segment(node))] = node
	}
	return x, err
}

// reaches returns the nodes whose volumes can be reached from the required topologies, the preferred ones
// first. The first preferred topology is the node that a scheduler has chosen. Each preferred topology has to be requisite
// as well. Without requisite topologies, all nodes are possible.
func (s *Server) reaches(r *wire.TopologyRequirement) ([]string, error) {
	const field = "accessibility_requirements"
	if r == nil {
		return s.nodes()
	}
	if len(r.Requisite)+len(r.Preferred) == 0 {
		return nil, fmt.Errorf("%s: %w: requisite or preferred topologies are required", field, drivebay.ErrInvalid)
	}
	x, err := s.places()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	var out []string
	for _, p := range r.Preferred {
		same := func(t *wire.Topology) bool { return maps.Equal(t.GetSegments(), p.GetSegments()) }
		if len(r.Requisite) > 0 && !slices.ContainsFunc(r.Requisite, same) {
			return nil, fmt.Errorf("%s: %w: a preferred topology is missing in the requisite topologies", field, drivebay.ErrInvalid)
		}
		out = append(out, x.inside(p)...)
	}
	for _, t := range r.Requisite {
		out = append(out, x.inside(t)...)
	}
	switch {
	case len(r.Requisite) == 0:
		out = append(out, x.all...)
	case len(out) == 0 && s.opt.Cluster == nil:
		return nil, fmt.Errorf("%s: %w: no requisite topology contains this node, %s=%s", field, drivebay.ErrNoSpace, TopologyKey, segment(s.opt.NodeID))
	case len(out) == 0:
		return nil, fmt.Errorf("%s: %w: no requisite topology contains a node of the cluster that has drives and is known", field, drivebay.ErrNoSpace)
	}
	return unique(out), nil
}

// unique removes all but the first of equal names.
func unique(names []string) []string {
	there := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		was := there[name]
		there[name] = true
		return was
	})
}
