package lvm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// Step is one command of a plan. It can be interrupted at any point and run again.
type Step struct {
	Name string   // for people: "create volume a/b"
	Argv []string // LVM's command; "pv:UUID" stands for the current device node of that physical volume, "pv:UUID:1-5" for its extents
	// Done reports whether a report shows that nothing is left to do.
	Done func(*Report) bool
	// May refuses the step when the report does not match what the plan was made for;
	// nil allows it.
	May func(*Report) error
	// Always runs the step even if Done is true: no report shows its reason.
	Always bool
	// Allocates marks a command that gives extents to a volume without copying data over
	// all of them.
	Allocates bool
	// Polls marks a command that waits for a copy of the kernel, outside LVM's lock. It is stopped when
	// its caller has gone, or after commandTime: it might wait for ever, and keep others from ending the
	// copy.
	Polls bool
	// Unlabels is the UUID of the physical volume whose label the command removes.
	Unlabels string
	// Labels are the devices that the command labels where it finds no label, as in Argv. LVM opens them by their names.
	Labels []string
	// Hold proves right before the command that these devices are still those that the plan was made for, and keeps them open
	// until release is called; nil: nothing is proved.
	Hold func(ctx context.Context, devices []string) (release func(), err error)
}

// hold proves the devices that the command of a step labels.
func (s *Step) hold(ctx context.Context, r *Report) (release func(), err error) {
	if s.Hold == nil || len(s.Labels) == 0 {
		return func() {}, nil
	}
	devices, err := expand(r, s.Labels)
	if err != nil {
		return nil, err
	}
	return s.Hold(ctx, devices)
}

const pvMark = "pv:"

func pvArg(uuid string) string { return pvMark + uuid }

// extentArgs returns extents in LVM's form: PhysicalVolume:first-last (lvextend(8)).
func extentArgs(list []Allocation) []string {
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

// expand replaces the UUIDs in a command by the current device nodes.
func expand(r *Report, argv []string) ([]string, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("%w: step without a command", drivebay.ErrInvalid)
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
			return nil, fmt.Errorf("physical volume %s: %w: two drives have this UUID", uuid, drivebay.ErrAmbiguous)
		case p.Device == "":
			return nil, fmt.Errorf("physical volume %s: %w", uuid, ErrMissingPV)
		}
		if out[i] = p.Device; ranged {
			out[i] += ":" + extents
		}
	}
	return out, nil
}

// tagArgs returns the options that put tags on a new object.
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
