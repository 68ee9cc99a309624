package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// app is one run of the program and the world it runs in.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	environ  []string
	now      func() time.Time
	tty      bool // out is a terminal

	api   string // --api
	local bool   // --local
	root  string // --root
	color string // --color
}

// usageError is a call that we do not understand.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run runs one command line and returns the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(a.err, "drivebay: %v\n", err)
	var wrong usageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(a.err, "see: %s --help\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailure
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "drivebay",
		Short: "Knows every drive of a machine, says how it is and why",
		Long: "drivebay watches the drives of a machine, judges their health from their own evidence\n" +
			"and the kernel's, and says why. Most commands ask the daemon (drivebay serve); with\n" +
			"--local they look for themselves, with --root they read a recorded machine.",
		SilenceUsage: true, SilenceErrors: true,
	}
	api := a.getenv("DRIVEBAY_API")
	if api == "" {
		api = a.place().API()
	}
	f := root.PersistentFlags()
	f.StringVar(&a.api, "api", api, "address of the daemon, unix:///path or http://host:port (also $DRIVEBAY_API)")
	f.BoolVar(&a.local, "local", false, "ask the drives of this machine, without a daemon")
	f.StringVar(&a.root, "root", "", "read the machine recorded in this folder, which holds sys/")
	f.StringVar(&a.color, "color", "auto", "colours: auto, always or never")
	root.AddCommand(
		a.serveCommand(), a.drivesCommand(), a.driveCommand(), a.explainCommand(), a.smartCommand(),
		a.claimCommand(), a.unclaimCommand(), a.capacityCommand(), a.volumesCommand(), a.volumeCommand(), a.scrubCommand(), a.healCommand(), a.locateCommand(), a.selftestCommand(), a.refreshCommand(), a.eventsCommand(), a.simCommand(), a.assessCommand(),
		a.statusCommand(), a.csiCommand(), a.configCommand(), a.versionCommand(), a.docsCommand(),
	)
	root.AddCommand(a.leaveCommands()...)
	root.AddCommand(a.cordonCommands()...)
	strict(root)
	return root
}

// strict makes every command refuse what it does not understand, as a usage error.
func strict(cmd *cobra.Command) {
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
		strict(sub)
	}
}

// noSuchCommand refuses a word that is no subcommand, and says which one is near.
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

// defaultWidth is a screen that does not say how wide it is.
const defaultWidth = 120

// style is how to draw for whoever reads our output. What goes into a pipe is
// not cut, unless COLUMNS says so.
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
	if a.tty {
		s.Width = defaultWidth
	}
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s, nil
}

// print writes text, and lets a write error fail the command.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.out, text)
	return err
}
