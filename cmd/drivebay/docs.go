package main

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/volume"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docsCommand writes the pages that are made from the code.
func (a *app) docsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "docs", Short: "Print the pages that are made from the program", Hidden: true}
	cmd.AddCommand(
		&cobra.Command{Use: "cli", Short: "docs/cli.md", RunE: func(cmd *cobra.Command, _ []string) error { return a.print(reference(cmd.Root())) }},
		&cobra.Command{Use: "config", Short: "examples/drivebay.yaml", RunE: func(*cobra.Command, []string) error { return config.Example(a.out) }},
		&cobra.Command{Use: "conditions", Short: "docs/volume-conditions.md", RunE: func(*cobra.Command, []string) error { return drivebay.ConditionMarkdown(a.out) }},
		&cobra.Command{Use: "repairs", Short: "docs/repairs.md", RunE: func(*cobra.Command, []string) error { return volume.RepairMarkdown(a.out) }},
		&cobra.Command{Use: "usage", Short: "docs/drive-usage.md", RunE: func(*cobra.Command, []string) error { return drivebay.UsageMarkdown(a.out) }},
		&cobra.Command{Use: "events", Short: "docs/events.md", RunE: func(*cobra.Command, []string) error { return drivebay.EventMarkdown(a.out) }},
		&cobra.Command{Use: "rules", Short: "docs/health-rules.md", RunE: func(*cobra.Command, []string) error { return health.Markdown(a.out, health.Default()) }},
	)
	return cmd
}

// reference describes every command, in the order of the help.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the program by `drivebay docs cli`: do not edit.\n\n")
	b.WriteString("Exit status: 0 done, 1 failed, 2 the call itself is wrong.\n\n")
	b.WriteString("Flags of every command:\n\n" + flagTable(root.PersistentFlags()))
	describe(&b, root)
	b.WriteString("\n## drivebay completion\n\n`drivebay completion bash|zsh|fish` prints a script that completes commands and flags.\n")
	return b.String()
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" { // those two are cobra's
		return
	}
	if !cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", cmd.CommandPath(), cmd.Short, cmd.UseLine())
		if cmd.Long != "" {
			fmt.Fprintf(b, "\n%s\n", cmd.Long)
		}
		if cmd.Example != "" {
			fmt.Fprintf(b, "\nExamples:\n\n```\n%s\n```\n", cmd.Example)
		}
		if flags := flagTable(cmd.LocalNonPersistentFlags()); flags != "" {
			b.WriteString("\n" + flags)
		}
	}
	for _, sub := range cmd.Commands() {
		describe(b, sub)
	}
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		def := f.DefValue
		if def == "" || def == "[]" || def == "false" {
			def = "-"
		}
		if f.Name == "api" {
			def = "the daemon's socket" // it depends on who asks
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, f.Usage, def)
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | what it does | default |\n|---|---|---|\n" + b.String()
}
