package lvm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// Step is one command of a plan. It can be interrupted anywhere and run again.
type Step struct {
	Name string   // for people: "create volume a/b"
	Argv []string // lvm's command; "pv:UUID" stands for where that physical volume is now, "pv:UUID:1-5" for extents of it
	// Done says from a report that nothing is left to do.
	Done func(*Report) bool
	// May refuses a step whose world is not the one the plan was made for; nil
	// lets it pass.
	May func(*Report) error
	// Always runs the step even if it seems done: its reason is not in a report.
	Always bool
	// Allocates marks a command that gives a volume extents as they are: nothing is copied
	// over all of them.
	Allocates bool
	// Long marks a command that copies data: it has no time limit of its own.
	Long bool
}

const pvMark = "pv:"

func pvArg(uuid string) string { return pvMark + uuid }

// extentArgs names extents as lvm does: PhysicalVolume:first-last (lvextend(8)).
func extentArgs(list []Extent) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = fmt.Sprintf("%s:%d-%d", pvArg(x.PV), x.Start, x.Start+x.Count-1)
	}
	return out
}

func pvArgs(uuids []string) []string {
	out := make([]string, len(uuids))
	for i, u := range uuids {
		out[i] = pvArg(u)
	}
	return out
}

// expand writes the kernel's names of today for the UUIDs in a command.
func expand(r *Report, argv []string) ([]string, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("%w: a step without a command", drivebay.ErrInvalid)
	}
	out := slices.Clone(argv)
	for i, a := range argv {
		what, ok := strings.CutPrefix(a, pvMark)
		if !ok {
			continue
		}
		uuid, extents, ranged := strings.Cut(what, ":")
		p, _ := r.PV(uuid)
		switch {
		case p == nil:
			return nil, fmt.Errorf("physical volume %s: %w", uuid, ErrNotFound)
		case p.Duplicate:
			return nil, fmt.Errorf("physical volume %s: %w: two drives have this identity", uuid, drivebay.ErrAmbiguous)
		case p.Device == "":
			return nil, fmt.Errorf("physical volume %s: %w", uuid, ErrMissingPV)
		}
		if out[i] = p.Device; ranged {
			out[i] += ":" + extents
		}
	}
	return out, nil
}

// tagArgs are the options that put tags on something new.
func tagArgs(tags ...string) []string {
	var out []string
	for _, t := range tags {
		out = append(out, "--addtag", t)
	}
	return out
}

func checkTags(tags []string) error {
	for _, t := range tags {
		if err := checkTag(t); err != nil {
			return err
		}
	}
	return nil
}

func command(parts ...[]string) []string { return slices.Concat(parts...) }
