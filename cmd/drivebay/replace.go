package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a *app) replaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replace BAY|ID", Short: "Lead a drive out and its successor in, step by step", Args: cobra.ExactArgs(1),
		Long: "Leads a drive out of the machine and its successor in. It is released: what is on it moves off,\n" +
			"or is waited for. Once nothing depends on it and you agree (or --yes), the kernel lets go of it\n" +
			"and its bay is lit. Then pull it and put the new one in: the drive in the same bay takes over\n" +
			"its claim. Every step and what it waits for is told.\n\n" +
			"Where it stands the daemon knows. Stop this at any time: the same command goes on. Until the\n" +
			"drive is taken out, `drivebay cancel` keeps it.",
		Example: "  drivebay replace 12\n  drivebay replace sdc --why 'it clicks' --yes",
	}
	r := replacement{app: a}
	cmd.Flags().StringVar(&r.why, "why", "", "the reason, kept with the drive and told in its events")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "take it out without asking, once nothing depends on it")
	cmd.Flags().BoolVar(&r.detach, "detach", false, "do what can be done at once, say what is waited for, and do not wait")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) }
	return cmd
}

// replacement is one run of the command.
type replacement struct {
	*app
	src         source
	why         string
	yes, detach bool
	until       time.Time // how long --detach waits

	drive   string // its id
	said    string // last
	percent int    // of the progress that was last said
	inPlace bool   // the last line was written to be overwritten
	event   uint64 // the last one that was looked at
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
	if err := r.print(introduce(s, d)); err != nil {
		return err
	}
	if d.Usage == drivebay.UsageFailed { // whoever asks again wants it tried again
		if s, err = r.do(ctx, s, d, drivebay.LeaveRetry); err != nil {
			return err
		}
	}
	err = r.lead(ctx, s)
	if ctx.Err() != nil {
		return fmt.Errorf("%w before its end: the daemon keeps where it stands, and `drivebay replace %s` goes on", context.Canceled, r.drive)
	}
	return err
}

// introduce says which drive it is, so that nobody takes another one for it.
func introduce(s *drivebay.Snapshot, d *drivebay.Drive) string {
	text := fmt.Sprintf("drive %s (%s), %s, %v, %s\n  where: %s\n  health: %v", d.ID, d.Name, strings.TrimSpace(d.Vendor+" "+d.Model), d.Type, render.Bytes(d.Size), s.Where(d), d.Health)
	if len(d.Findings) > 0 {
		text += ": " + d.Findings[0].Text
	}
	return cleanLines(text)
}

func cleanLines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(render.Clean(line) + "\n")
	}
	return b.String()
}

// lead goes from step to step until the successor is in use.
func (r *replacement) lead(ctx context.Context, s *drivebay.Snapshot) error {
	for {
		d, ok := s.Find(r.drive)
		if !ok {
			return fmt.Errorf("drive %s: %w: it is not remembered any more", r.drive, drivebay.ErrNotFound)
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
			return r.line(fmt.Sprintf("`drivebay replace %s --yes` takes it out", d.ID))
		case st.verb != "":
			if st.ask {
				err = r.agree(ctx, s, d)
			}
			if err == nil {
				s, err = r.do(ctx, s, d, st.verb)
			}
		case r.detach && d.Usage == drivebay.UsageRemoved:
			return nil // a hand is waited for
		default:
			s, err = r.wait(ctx, s)
			if s == nil && err == nil {
				return nil // it takes long, and we are not to wait
			}
		}
		if err != nil {
			return err
		}
	}
}

// detachTime is how long --detach waits for what may happen at once.
const detachTime = 10 * time.Second

// wait waits for a change, and tells what else happens meanwhile. With --detach it
// waits for a short time in all: no snapshot then.
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

// do says something of the drive, and waits until it shows.
func (r *replacement) do(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive, verb drivebay.LeaveVerb) (*drivebay.Snapshot, error) {
	err := r.src.Lead(ctx, d.ID, verb, r.why)
	for err == nil {
		if is, ok := s.Find(d.ID); !ok || is.Usage != d.Usage {
			return s, nil
		}
		s, err = r.src.Wait(ctx, s.Seq)
	}
	return s, err
}

// agree asks whether the drive may be taken out.
func (r *replacement) agree(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive) error {
	if r.yes {
		return nil
	}
	refused := fmt.Errorf("%w: drive %s (%s) would be taken out: %s: to do so add --yes", drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(s.Where(d)))
	if !r.tty {
		return refused
	}
	if err := r.print("take it out now? The kernel lets go of it, and its bay is lit. [y/N] "); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // nobody can take back a read
		line, _ := bufio.NewReader(r.in).ReadString('\n')
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
