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

// holds reports whether this node is inside a topology. Keys are case-insensitive; a key
// other than TopologyKey describes no place that this plugin knows.
func (s *Server) holds(t *wire.Topology) bool {
	for key, value := range t.GetSegments() {
		if !strings.EqualFold(key, TopologyKey) || !strings.EqualFold(value, segment(s.opt.NodeID)) { // earlier versions sent the name in its original case
			return false
		}
	}
	return true
}

// reaches returns an error if volumes made on this node cannot be reached from the
// required topologies. Preferred topologies do not decide, but each has to be requisite
// as well.
func (s *Server) reaches(r *wire.TopologyRequirement) error {
	const field = "accessibility_requirements"
	if r == nil {
		return nil
	}
	if len(r.Requisite)+len(r.Preferred) == 0 {
		return fmt.Errorf("%s: %w: requisite or preferred topologies are required", field, drivebay.ErrInvalid)
	}
	if len(r.Requisite) == 0 {
		return nil
	}
	for _, p := range r.Preferred {
		same := func(t *wire.Topology) bool { return maps.Equal(t.GetSegments(), p.GetSegments()) }
		if !slices.ContainsFunc(r.Requisite, same) {
			return fmt.Errorf("%s: %w: a preferred topology is missing in the requisite topologies", field, drivebay.ErrInvalid)
		}
	}
	if !slices.ContainsFunc(r.Requisite, s.holds) {
		return fmt.Errorf("%s: %w: no requisite topology contains this node, %s=%s", field, drivebay.ErrNoSpace, TopologyKey, segment(s.opt.NodeID))
	}
	return nil
}
