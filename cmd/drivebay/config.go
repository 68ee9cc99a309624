package main

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check or print the configuration of the daemon"}
	check := &cobra.Command{
		Use: "check FILE", Short: "Report the errors in a configuration file", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := config.Load(config.Sources{File: args[0]}); err != nil {
				return err
			}
			return a.print(args[0] + " is valid\n")
		},
	}
	printed := &cobra.Command{
		Use: "print", Short: "Print the configuration that `drivebay serve` would use, with every key explained",
		Long: "Prints the configuration that results from the file, the DRIVEBAY_* variables and the defaults.\nThe output is a configuration file.",
	}
	file := printed.Flags().String("config", a.getenv("DRIVEBAY_CONFIG"), configFileDoc)
	printed.RunE = func(*cobra.Command, []string) error {
		loaded, err := config.Load(config.Sources{File: *file, Usual: a.place().File(), Env: csiEndpoint(a.environ)})
		if err != nil {
			return err
		}
		for _, w := range loaded.Warnings {
			fmt.Fprintln(a.err, "note: "+w)
		}
		return config.Print(a.out, loaded.Resolve(a.place()))
	}
	cmd.AddCommand(check, printed)
	return cmd
}

func (a *app) place() config.Place {
	return config.Place{Root: config.Here().Root, Getenv: a.getenv}
}

// configFlags adds the flags that the configuration names to a command. It returns a
// function that returns the values of those that were given, by key. Persistent flags
// of the program are shared.
func configFlags(cmd *cobra.Command) func() map[string]string {
	def := config.Default()
	paths := map[string]string{} // flag -> key
	for _, f := range def.Fields() {
		if f.Flag == "" {
			continue
		}
		paths[f.Flag] = f.Path
		doc := strings.TrimSuffix(f.Doc, ".")
		switch {
		case f.Flag == "api" || f.Flag == "root": // persistent flags of the program
		case f.Bool:
			cmd.Flags().Bool(f.Flag, false, doc)
		default:
			cmd.Flags().String(f.Flag, f.Text(), doc)
		}
	}
	return func() map[string]string {
		given := map[string]string{}
		for flag, path := range paths {
			if f := cmd.Flag(flag); f != nil && f.Changed {
				given[path] = f.Value.String()
			}
		}
		return given
	}
}
