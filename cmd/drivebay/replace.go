package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/progress"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a driveCommands) replaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replace BAY|DRIVE", Short: "Replace a drive step by step", Args: cobra.ExactArgs(1),
		Long: "Replaces a drive, and prints every step and what the step waits for:\n\n" +
			"1. The drive is released. Its volumes move to other drives, or the command waits for them.\n" +
			"2. When nothing depends on the drive and you confirm (or --yes is set), the kernel removes the\n" +
			"   drive, and the light of its bay is switched on.\n" +
			"3. You pull the drive and insert the new one. The drive in the same bay inherits the claim.\n\n" +
			"The daemon keeps the state of the replacement. You can stop this command at any time: the same\n" +
			"command continues it. Until the drive is removed, `drivebay cancel DRIVE` keeps it.",
		Example: "  drivebay replace 12\n  drivebay replace sdc --why 'it clicks' --yes",
	}
	r := replacement{app: a.app}
	cmd.Flags().StringVar(&r.why, "why", "", "reason; stored with the drive and shown in its events")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask: replace also a drive that is GOOD, and remove it when nothing depends on it")
	cmd.Flags().BoolVar(&r.detach, "detach", false, "do the steps that take no time, print what the next step waits for, and do not wait")
	dry := dryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.answers = bufio.NewReader(a.in)
		if *dry {
			return r.dryRun(cmd.Context(), args[0])
		}
		return r.run(cmd.Context(), args[0])
	}
	return cmd
}

// replacement is one run of `drivebay replace`.
type replacement struct {
	*app
	src         source
	why         string
	yes, detach bool
	until       time.Time // when --detach stops waiting
	answers     *bufio.Reader

	drive string // ID of the drive to replace
	said  string // text of the last step printed
	meter *progress.Meter
	event uint64 // number of the last event read
}

func (r *replacement) run(ctx context.Context, what string) error {
	var err error
	if r.src, err = r.source(); err != nil {
		return err
	}
	if r.event, err = r.lastEvent(ctx); err != nil {
		return err
	}
	s, err := r.src.Drives(ctx)
	if err != nil {
		return err
	}
	d, err := replacedNow(s, what, r.now())
	if err != nil {
		return err
	}
	r.drive = d.ID
	if err := r.print(r.wrapped(introduce(s, d))); err != nil {
		return err
	}
	if err := r.wanted(ctx, d); err != nil {
		return err
	}
	if d.Usage == drivebay.UsageFailed { // a second run retries what failed
		if s, err = r.do(ctx, s, d, drivebay.LeaveRetry); err != nil {
			return err
		}
	}
	err = r.lead(ctx, s)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w: the daemon keeps the state of the replacement; `drivebay replace %s` continues it", context.Canceled, r.drive)
	}
	return err
}

// dryRun prints what the replacement would do.
func (r *replacement) dryRun(ctx context.Context, what string) error {
	f, err := r.facts(ctx)
	if err != nil {
		return err
	}
	d, err := replacedNow(f.Drives, what, r.now())
	if err != nil {
		return err
	}
	return r.print(introduce(f.Drives, d) + f.Replacement(d).Text("replace drive "+d.ID))
}

// wanted asks the operator about a drive that is in use and GOOD: a mistyped bay is more likely than
// the replacement of such a drive.
func (r *replacement) wanted(ctx context.Context, d *drivebay.Drive) error {
	if r.yes || d.Health != drivebay.HealthGood || d.Usage != drivebay.UsageInUse {
		return nil
	}
	refused := fmt.Errorf("%w: drive %s (%s) is GOOD; to replace it nevertheless, run `drivebay replace %s --yes`", drivebay.ErrRefused, d.ID, render.Clean(d.Name), d.ID)
	return r.ask(ctx, "The drive is GOOD. Release it and replace it nevertheless? [y/N] ", refused)
}

// introduce describes the drive, so that an operator cannot mistake it for another.
func introduce(s *drivebay.Snapshot, d *drivebay.Drive) string {
	text := fmt.Sprintf("drive %s (%s), %s, %v, %s\n  where: %s\n  health: %v", d.ID, d.Name, strings.TrimSpace(d.Vendor+" "+d.Model), d.Type, render.Bytes(d.Size), s.Where(d), d.Health)
	if len(d.Findings) > 0 {
		text += ": " + d.Findings[0].Text
	}
	return render.CleanLines(text)
}

// lead does one step after another until the successor is in use. With --detach it ends
// at the first step that takes long.
func (r *replacement) lead(ctx context.Context, s *drivebay.Snapshot) error {
	for {
		d, ok := s.Get(r.drive)
		if !ok {
			return fmt.Errorf("drive %s: %w: its record was deleted", r.drive, drivebay.ErrNotFound)
		}
		st := stepOf(s, d)
		if err := r.tell(st); err != nil || st.done {
			return err
		}
		if st.failed != "" {
			return fmt.Errorf("drive %s (%s): %s", d.ID, d.Name, render.Clean(st.failed))
		}
		var err error
		switch {
		case st.ask && r.detach && !r.yes:
			return r.line(fmt.Sprintf("`drivebay replace %s --yes` removes the drive", d.ID))
		case st.verb != "":
			if st.ask {
				err = r.agree(ctx, s, d)
			}
			if err == nil {
				s, err = r.do(ctx, s, d, st.verb)
			}
		case r.detach && d.Usage == drivebay.UsageRemoved:
			return nil // an operator has to pull the drive
		default:
			s, err = r.wait(ctx, s)
			if s == nil && err == nil {
				return nil // --detach: the time is over
			}
		}
		if err != nil {
			return err
		}
	}
}

// detachTime is how long --detach waits for changes in all.
const detachTime = 10 * time.Second

// wait waits for a change, and prints the events that happen meanwhile. With --detach it
// returns no snapshot once detachTime is over.
func (r *replacement) wait(ctx context.Context, s *drivebay.Snapshot) (*drivebay.Snapshot, error) {
	soon := ctx
	if r.detach {
		if r.until.IsZero() {
			r.until = time.Now().Add(detachTime)
		}
		var cancel context.CancelFunc
		soon, cancel = context.WithDeadline(ctx, r.until)
		defer cancel()
	}
	s, err := r.src.Wait(soon, s.Seq)
	switch {
	case err != nil && ctx.Err() == nil && soon.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s, r.tellEvents(ctx, s)
}

// do applies a verb to the drive, and waits until the usage of the drive changes.
func (r *replacement) do(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive, verb drivebay.LeaveVerb) (*drivebay.Snapshot, error) {
	err := r.src.Operate(ctx, d.ID, verb, r.why)
	for err == nil {
		if is, ok := s.Get(d.ID); !ok || is.Usage != d.Usage {
			return s, nil
		}
		s, err = r.src.Wait(ctx, s.Seq)
	}
	return s, err
}

// agree asks the operator whether the drive may be taken out.
func (r *replacement) agree(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive) error {
	if r.yes {
		return nil
	}
	refused := fmt.Errorf("%w: drive %s (%s) would be removed: %s; to confirm, add --yes", drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(s.Where(d)))
	return r.ask(ctx, "Remove the drive now? The kernel removes it, and the light of its bay is switched on. [y/N] ", refused)
}

// ask asks a question at the terminal. It returns refused if the answer is not yes, and without a
// terminal.
func (r *replacement) ask(ctx context.Context, question string, refused error) error {
	if !r.tty {
		return refused
	}
	if err := r.print(question); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // a read cannot be canceled
		line, _ := r.answers.ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return refused
	case <-ctx.Done():
		return ctx.Err()
	}
}
