package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/browser"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/complete"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/daemon"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/demo"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plugin"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/replicate"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// app is one run of the program: its streams, environment and global flags.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	environ  []string
	now      func() time.Time
	tty      bool       // out is a terminal
	columns  func() int // the width of that terminal; 0: not known

	api   string // --api
	local bool   // --local
	root  string // --root
	color string // --color

	daemon *api.Client    // see dial
	plugin *plugin.Plugin // nil: this is no plugin of kubectl

	simulate func(path string) (daemon.Simulated, error) // opens the machine of `drivebay serve --sim`
}

// These are the commands by what they are about. Each has the streams, flags and sources of
// the run.
type (
	driveCommands  struct{ *app }
	volumeCommands struct{ *app } // snapshots too
	eventCommands  struct{ *app }
	simCommands    struct{ *app }
)

// usageError is an error in the command line; run returns exitUsage for it.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run runs one command line and returns the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	defer a.plugin.Close()
	defer a.hangUp()
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var ends exitError
	if errors.As(err, &ends) && ends.err == nil {
		return ends.code
	}
	fmt.Fprintf(a.err, "drivebay: %v\n", err)
	if ends.err != nil {
		return ends.code
	}
	var wrong usageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(a.err, "see: `%s --help`\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailure
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "drivebay",
		Short: "Monitor the drives of a machine and manage volumes on them",
		Long: "drivebay monitors the drives of a machine, determines their health from the evidence of the\n" +
			"drives and of the kernel, and reports the reasons. Most commands query the daemon\n" +
			"(`drivebay serve`). With --local a command reads the drives of this machine itself, with\n" +
			"--root it reads a recorded machine. Without a command drivebay shows the status." + naming,
		SilenceUsage: true, SilenceErrors: true,
	}
	address := a.getenv("DRIVEBAY_API")
	if address == "" {
		address = a.place().ClientAPI(func(path string) error { _, err := os.Stat(path); return err })
	}
	f := root.PersistentFlags()
	f.StringVar(&a.api, "api", address, "address of the daemon: unix:///path or http://host:port (also $DRIVEBAY_API)")
	f.BoolVar(&a.local, "local", false, "read the drives of this machine directly, without the daemon")
	f.StringVar(&a.root, "root", "", "read the machine that is recorded in this directory, which contains sys/")
	f.StringVar(&a.color, "color", "auto", "when to print colors: auto, always or never")
	drives, volumes, events, sim := driveCommands{a}, volumeCommands{a}, eventCommands{a}, simCommands{a}
	root.AddCommand(
		a.serveCommand(), drives.drivesCommand(), drives.driveCommand(), a.explainCommand(), drives.smartCommand(),
		drives.claimCommand(), drives.unclaimCommand(), volumes.capacityCommand(), volumes.volumesCommand(), volumes.volumeCommand(),
		volumes.scrubCommand(), volumes.healCommand(), drives.locateCommand(), a.notifyCommand(), drives.selftestCommand(), drives.refreshCommand(),
		events.eventsCommand(), sim.simCommand(), a.assessCommand(), a.statusCommand(), drives.treeCommand(), a.csiCommand(), a.configCommand(), a.versionCommand(), a.docsCommand(), browser.Command(&a.api, a.out), demo.Command(a.out, simulated),
	)
	root.AddCommand(replicate.Command(replicate.Program{
		In: a.in, Client: a.client, Print: a.print, Usage: usage, UntilDone: a.untilDone, DryRun: volumes.dryRunVolume, Wrong: a.printWrong, CannotTell: cannotTell, ExitStatuses: exitStatuses,
		Output: func(cmd *cobra.Command, formats ...string) replicate.Printer {
			out := outputFlag(cmd, formats...)
			return func(value any, draw func(render.Style) string) error { return a.printAs(out, value, draw) }
		},
	}))
	root.AddCommand(drives.leaveCommands()...)
	root.AddCommand(drives.cordonCommands()...)
	// Not cobra's own flag: a template for its text keeps the linker from leaving out unused methods, 4 MB.
	versionOnly := root.Flags().BoolP("version", "v", false, "print the version")
	complete.Add(root, a.completionClient)
	a.plugin.Adapt(root, &a.api)
	usageErrors(root)
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *versionOnly {
			return a.print(versionText())
		}
		return a.alone(cmd, args)
	}
	return root
}

// usageErrors makes a command and its subcommands return a usage error for bad flags and arguments.
func usageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	check := cmd.Args
	if cmd.HasSubCommands() {
		check = noSuchCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		usageErrors(sub)
	}
}

// noSuchCommand refuses an unknown subcommand and names the nearest one.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, sub := range cmd.Commands() {
		known = append(known, sub.Name())
	}
	if near, ok := config.Nearest(args[0], known); ok {
		return fmt.Errorf("%s has no command %q: did you mean %q?", cmd.CommandPath(), args[0], near)
	}
	return fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0])
}

// defaultWidth is the width of a terminal that does not report it.
const defaultWidth = 80

// style returns how to draw the output. Output that is not on a terminal has no width. On a terminal
// COLUMNS wins, which is the width that the user prefers (POSIX.1-2024, XBD 8.3).
func (a *app) style() (render.Style, error) {
	s := render.Style{Now: a.now()}
	switch a.color {
	case "always":
		s.Color = true
	case "auto": // https://no-color.org: set and not empty
		s.Color = a.tty && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
	case "never":
	default:
		return s, usage("--color %q: want auto, always or never", a.color)
	}
	if !a.tty {
		return s, nil
	}
	s.Width = defaultWidth
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	} else if n := a.columns(); n > 0 {
		s.Width = n
	}
	return s, nil
}

// print writes text; a write error fails the command.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.out, text)
	return err
}
