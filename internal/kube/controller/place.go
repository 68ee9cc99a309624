package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// choose returns the node for a new volume: the first one with room, if the request names nodes, and else the one with
// the most room. refused are nodes that have refused it in this call.
func choose(sites []site, r drivebay.VolumeRequest, refused map[string]bool) (string, error) {
	if r.Nodes == nil {
		sites = slices.Clone(sites)
		slices.SortStableFunc(sites, func(a, b site) int { return cmp.Compare(b.room.Available, a.room.Available) })
	}
	var down, unread, full []string
	for _, s := range sites {
		switch need := max(r.Size.Required, s.room.Smallest); {
		case refused[s.name]:
		case s.down != "":
			down = append(down, s.name)
		case s.room.Largest == 0 || s.room.Largest < need:
			if !s.whole {
				unread = append(unread, s.name)
			}
			full = append(full, fmt.Sprintf("%s has %d bytes in one piece", s.name, s.room.Largest))
		default:
			return s.name, nil
		}
	}
	switch {
	case len(sites) == 0:
		return "", fmt.Errorf("create volume %q: %w: no node of the cluster has reported its drives", r.Name, drivebay.ErrUnavailable)
	case len(down) > 0:
		return "", fmt.Errorf("create volume %q: %w: the nodes %s do not report, and no other node has room for %d bytes", r.Name, drivebay.ErrUnavailable, some(down), r.Size.Required)
	case len(unread) > 0:
		return "", fmt.Errorf("create volume %q: %w: the nodes %s have not read all of their drives yet, and no other node has room for %d bytes", r.Name, drivebay.ErrUnavailable, some(unread), r.Size.Required)
	}
	return "", fmt.Errorf("create volume %q: %w: no node has room for %d bytes on drives of this class: %s", r.Name, drivebay.ErrNoSpace, r.Size.Required, some(full))
}

// some lists the first of some names.
func some(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
