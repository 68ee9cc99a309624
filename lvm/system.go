package lvm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// Runner runs a program in the C locale; host.Machine is one.
type Runner interface {
	Run(ctx context.Context, argv ...string) ([]byte, error)
}

// System runs the LVM commands of a machine. Run and Salvage change a group one at a time.
type System struct {
	runner  Runner
	archive string

	mu   sync.Mutex
	busy map[string]*groupLock // by group, while a change of it is under way or waits
}

// groupLock allows one change of a group at a time.
type groupLock struct {
	token chan struct{} // holds one
	users int           // that hold it or wait for it
}

// New makes a System that keeps LVM's copies of the metadata in folders below archive;
// "" keeps none.
func New(r Runner, archive string) *System {
	return &System{runner: r, archive: archive, busy: map[string]*groupLock{}}
}

// commandTime limits a command that only reads, or waits. A report of a thousand volumes takes
// well under a second; a command that takes longer waits for a drive that hangs.
const commandTime = 2 * time.Minute

// settings overrides the machine's lvm.conf (lvm.conf(5)).
func settings(archive string) string {
	keep := `backup{backup=0 archive=0}`
	if archive != "" {
		keep = fmt.Sprintf(`backup{backup=1 archive=1 backup_dir="%s/backup" archive_dir="%s/archive" retain_min=10 retain_days=30}`, archive, archive)
	}
	return strings.Join([]string{
		// Hints of a command that sees only our drives would mislead the host's commands.
		`devices{use_devicesfile=0 scan_lvs=0 hints="none" filter=["a|.*|"] global_filter=["a|.*|"] issue_discards=0}`,
		// No LVM daemon may change our groups.
		`activation{monitoring=0}`,
		`global{use_lvmpolld=0 use_lvmlockd=0 system_id_source="none" wait_for_locks=1}`,
		`report{mark_hidden_devices=0 binary_values_as_numeric=0 list_item_separator=","}`,
		`log{prefix="" command_names=0 silent=0 report_command_log=0}`,
		keep,
	}, " ")
}

// argv adds the settings and the list of devices to a command (see doc.go).
func (s *System) argv(devices, command []string) ([]string, error) {
	if len(devices) == 0 {
		return nil, fmt.Errorf("%s: %w: no drives given; LVM would read all drives of the machine", command[0], drivebay.ErrInvalid)
	}
	out := []string{"lvm", command[0], "--config", settings(s.archive)}
	for _, d := range devices {
		if !strings.HasPrefix(d, "/dev/") || strings.ContainsAny(d, ", \n\"") {
			return nil, fmt.Errorf("%s: %w: %q is not the path of a device", command[0], drivebay.ErrInvalid, d)
		}
		out = append(out, "--devices", d)
	}
	return append(out, command[1:]...), nil
}

func (s *System) run(ctx context.Context, devices, command []string) ([]byte, error) {
	argv, err := s.argv(devices, command)
	if err != nil {
		return nil, err
	}
	out, err := s.runner.Run(ctx, argv...)
	return out, classify(command[0], err)
}

// Read reports everything on these drives with one command, whatever the number of
// volumes.
func (s *System) Read(ctx context.Context, devices []string) (*Report, error) {
	if len(devices) == 0 {
		return &Report{}, nil
	}
	command := []string{"fullreport", "--all", "--reportformat", "json", "--units", "b", "--nosuffix"}
	for _, part := range [][2]string{{"vg", groupFields}, {"pv", pvFields}, {"lv", lvFields}, {"seg", segmentFields}, {"pvseg", extentFields}} {
		command = append(command, "--configreport", part[0], "-o", part[1])
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out, err := s.run(ctx, devices, command)
	if err != nil {
		return nil, err
	}
	return Parse(out)
}

// Run carries out a plan for a group: it skips steps that are done, and checks after each
// step with a new report that it is done. Devices are all drives of the group and those
// that the plan adds. Run returns the last report, also with an error if there was one by
// then.
func (s *System) Run(ctx context.Context, group string, devices []string, steps []Step) (*Report, error) {
	unlock, err := s.lock(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("volume group %s: %w", group, err)
	}
	defer unlock()
	report, err := s.Read(ctx, devices)
	if err != nil {
		return nil, err
	}
	for i, step := range steps {
		if err := requireOurs(report, group); err != nil {
			return report, fmt.Errorf("%s: %w", step.Name, err)
		}
		if i == 0 {
			if report, err = s.deactivateParts(ctx, report, group, devices); err != nil {
				return report, err
			}
		}
		if !step.Always && step.Done(report) {
			continue
		}
		if report, err = s.step(ctx, report, devices, step); err != nil {
			return report, fmt.Errorf("%s: %w", step.Name, err)
		}
	}
	return report, nil
}

func (s *System) step(ctx context.Context, before *Report, devices []string, step Step) (*Report, error) {
	if step.May != nil {
		if err := step.May(before); err != nil {
			return before, err
		}
	}
	command, err := expand(before, step.Argv)
	if err != nil {
		return before, err
	}
	release, err := step.hold(ctx, before)
	if err != nil {
		return before, err
	}
	defer release()
	if step.Polls {
		within, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		_, err = s.run(within, devices, command)
	} else {
		err = s.change(ctx, devices, command)
	}
	if err != nil {
		return before, err
	}
	after, err := s.Read(ctx, devices)
	if err != nil {
		return before, err
	}
	if !step.Done(after) {
		return after, fmt.Errorf("%w: %s succeeded, but the LVM report does not show its result", ErrUnknown, command[0])
	}
	return after, nil
}

// change runs a command that changes a group, and waits for its end, also after ctx has ended: LVM that
// is killed between suspending and resuming a volume leaves it suspended, and every request to it waits.
// It does not begin after ctx has ended.
func (s *System) change(ctx context.Context, devices, command []string) error {
	if err := ctx.Err(); err != nil {
		return classify(command[0], err)
	}
	_, err := s.run(context.WithoutCancel(ctx), devices, command)
	return err
}

// requireOurs refuses a group with our name and without our tag, and a name that two groups
// have: no command could select one of them.
func requireOurs(r *Report, group string) error {
	n := 0
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Name == group {
			n++
			if !slices.Contains(g.Tags, Tag) {
				return fmt.Errorf("volume group %s (%s): %w: no tag %q", group, g.UUID, ErrForeign, Tag)
			}
		}
	}
	if n > 1 {
		return fmt.Errorf("volume group %s: %w: %d volume groups have this name", group, drivebay.ErrAmbiguous, n)
	}
	return nil
}

// lock waits until no other change of the group is under way.
func (s *System) lock(ctx context.Context, group string) (func(), error) {
	s.mu.Lock()
	l := s.busy[group]
	if l == nil {
		l = &groupLock{token: make(chan struct{}, 1)}
		s.busy[group] = l
	}
	l.users++
	s.mu.Unlock()
	done := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.busy, group)
		}
	}
	select {
	case l.token <- struct{}{}:
		return func() { <-l.token; done() }, nil
	case <-ctx.Done():
		done()
		return nil, fmt.Errorf("wait for another change of the group: %w: %w", ErrLocked, ctx.Err())
	}
}

// ChangesUnderWay returns how many groups have a change under way.
func (s *System) ChangesUnderWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.busy)
}
