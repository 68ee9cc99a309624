// Package demo is `drivebay demo`: a simulated rack in which a drive ages, fails and is replaced, for people who look
// at drivebay for the first time.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/browser"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/daemon"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/simclient"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

//go:embed rack.yaml
var rack []byte

// Simulate makes a simulated machine from the file that describes it.
type Simulate func(path string) (daemon.Simulated, error)

// Command returns `drivebay demo`.
func Command(out io.Writer, simulate Simulate) *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch a simulated drive age, fail and be replaced, in a browser", Args: cobra.NoArgs,
		Long: "Runs a daemon with a simulated rack in a temporary directory, and prints a link to its page. In two\n" +
			"minutes a drive with a volume ages and fails, its volume moves to another drive, and the drive is\n" +
			"replaced. You can press the buttons yourself; what you do not do, the demonstration does. It touches\n" +
			"no drive of this machine.",
	}
	port := cmd.Flags().Int("port", 0, "port of 127.0.0.1; 0: any that is free")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		return (&demo{out: out, simulate: simulate, pace: time.Second}).run(ctx, *port)
	}
	return cmd
}

// demo is one run of the demonstration.
type demo struct {
	out      io.Writer
	pace     time.Duration // a second of the story
	simulate Simulate
	address  string // of the daemon
	client   *api.Client
	drive    string // id of the drive that fails
	serial   string // of it
}

func (d *demo) run(ctx context.Context, port int) (err error) {
	dir, err := os.MkdirTemp("", "drivebay-demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d.address = "unix://" + filepath.Join(dir, "api.sock")
	file, spec := filepath.Join(dir, "drivebay.yaml"), filepath.Join(dir, "rack.yaml")
	text := fmt.Sprintf("sim: %q\napi: %q\nstateDir: %q\npoll: {tick: 500ms}\nreplacement: {trigger: bad}\n", spec, d.address, filepath.Join(dir, "state"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(spec, rack, 0o600); err != nil {
		return err
	}
	load := func() (config.Loaded, error) { return config.Load(config.Sources{File: file}) }
	loaded, err := load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() {
		defer cancel() // without a daemon there is no demonstration
		stopped <- daemon.Run(ctx, loaded, daemon.Options{Load: load, Simulate: d.simulate,
			Place: config.Place{Getenv: func(string) string { return "" }}, Out: io.Discard, Err: io.Discard, Version: "demo"})
	}()
	defer func() {
		cancel()
		err = errors.Join(err, <-stopped)
	}()
	d.client = api.Dial(d.address)
	defer d.client.Close()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	forward, err := browser.Listen(ctx, d.address, "drivebay demo", port)
	if err != nil {
		return err
	}
	d.say("open this link in a browser; it works once:\n  %s\nthe demonstration is in %s, and ends with this command (ctrl-c)", forward.Link(), dir)
	go func() {
		if err := d.tell(ctx); err != nil && ctx.Err() == nil {
			d.say("the demonstration cannot continue: %v", err)
		}
	}()
	return forward.Serve(ctx)
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// prepare waits for the drives and creates volumes. The drive of the last one is the one that fails.
func (d *demo) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		st, err := d.client.Status(ctx)
		if err == nil && st.Ready() {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the simulated rack does not start: %w", errors.Join(err, ctx.Err()))
		}
	}
	var last drivebay.Volume
	for _, v := range []struct{ name, class string }{{"metrics", "nvme"}, {"mail", "hdd"}, {"orders", "hdd"}} {
		var err error
		if last, err = d.client.CreateVolume(ctx, api.VolumeBody{Name: v.name, Size: 1 << 30, Parameters: map[string]string{drivebay.ParameterClass: v.class}}); err != nil {
			return err
		}
	}
	d.drive = last.Location.Drives[0]
	drive, err := d.client.Drive(ctx, d.drive)
	if err != nil {
		return err
	}
	d.serial = drive.Serial
	return nil
}

// story is what happens to the drive, and when, in seconds from the start.
var story = []struct {
	at    int
	text  string
	fault string
	args  map[string]string
}{
	{8, "the drive gets warmer", "heat", map[string]string{"celsius": "44"}},
	{16, "sectors wait for reallocation", "pending", map[string]string{"n": "4"}},
	{24, "the drive has replaced sectors by spare ones", "reallocate", map[string]string{"n": "40"}},
	{32, "and more of them", "reallocate", map[string]string{"n": "320"}},
	{40, "the drive fails: drivebay releases it, and its volume moves to another drive", "reallocate", map[string]string{"n": "1800"}},
}

// Seconds that a person has for a step, before the demonstration does it.
const (
	approveAfter = 30
	replaceAfter = 15
)

// tell runs the story.
func (d *demo) tell(ctx context.Context) error {
	at := 0
	for _, s := range story {
		if err := d.wait(ctx, s.at-at); err != nil {
			return err
		}
		at = s.at
		d.say("%3d s: %s", at, s.text)
		if err := d.inject(ctx, s.fault, s.args); err != nil {
			return err
		}
		if err := d.client.Refresh(ctx); err != nil {
			return err
		}
	}
	if err := d.until(ctx, func(x *drivebay.Drive) bool { return x.Usage >= drivebay.UsageReleased }); err != nil {
		return err
	}
	d.say("nothing depends on the drive any more: press \"Approve the removal\" in the page, or wait")
	if err := d.approve(ctx); err != nil {
		return err
	}
	d.say("the drive can be pulled, and the light of its bay is on; a new one comes in %d s", replaceAfter)
	if err := d.wait(ctx, replaceAfter); err != nil {
		return err
	}
	if err := d.inject(ctx, "replace", map[string]string{"serial": "ZL2ANEW1"}); err != nil {
		return err
	}
	for {
		s, err := d.client.Drives(ctx)
		if err != nil {
			return err
		}
		for i := range s.Drives {
			if o := s.Drives[i].Succeeds; o != nil && o.Of == d.drive && !o.Taken.IsZero() {
				d.say("drive %s, serial %s, is the successor: this is the end. The page stays until ctrl-c", s.Drives[i].Name, s.Drives[i].Serial)
				return nil
			}
		}
		if _, err := d.client.Wait(ctx, s.Seq); err != nil {
			return err
		}
	}
}

// inject breaks the drive.
func (d *demo) inject(ctx context.Context, fault string, args map[string]string) error {
	return simclient.Ask(ctx, d.address, "POST", "faults", map[string]any{"drive": d.serial, "fault": fault, "args": args}, nil)
}

// approve waits for a person who approves the removal, and approves it after approveAfter seconds.
func (d *demo) approve(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, approveAfter*d.pace)
	defer cancel()
	removed := func(x *drivebay.Drive) bool { return x.Usage == drivebay.UsageRemoved }
	if err := d.until(soon, removed); err == nil || ctx.Err() != nil {
		return err
	}
	if err := d.client.Operate(ctx, d.drive, drivebay.LeaveApprove, "the demonstration"); err != nil {
		return err
	}
	return d.until(ctx, removed)
}

// until waits until the drive that fails is in some state.
func (d *demo) until(ctx context.Context, is func(*drivebay.Drive) bool) error {
	for {
		s, err := d.client.Drives(ctx)
		if err != nil {
			return err
		}
		if x, ok := s.Get(d.drive); ok && is(x) {
			return nil
		}
		if _, err := d.client.Wait(ctx, s.Seq); err != nil {
			return err
		}
	}
}

// wait waits for some seconds of the story.
func (d *demo) wait(ctx context.Context, seconds int) error {
	select {
	case <-time.After(time.Duration(seconds) * d.pace):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
