package main

import (
	"github.com/drivebay/drivebay/cmd/drivebay/internal/reference"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/volume"
	"github.com/spf13/cobra"
)

// docsCommand prints the pages that are generated from the code.
func (a *app) docsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "docs", Short: "Print the pages that are generated from the program", Hidden: true}
	cmd.AddCommand(
		&cobra.Command{Use: "cli", Short: "docs/cli.md", RunE: func(cmd *cobra.Command, _ []string) error { return a.print(reference.Commands(cmd.Root())) }},
		&cobra.Command{Use: "config", Short: "examples/drivebay.yaml", RunE: func(*cobra.Command, []string) error { return config.Example(a.out) }},
		&cobra.Command{Use: "conditions", Short: "docs/volume-conditions.md", RunE: func(*cobra.Command, []string) error { return condition.Markdown(a.out) }},
		&cobra.Command{Use: "repairs", Short: "docs/repairs.md", RunE: func(*cobra.Command, []string) error { return volume.RepairMarkdown(a.out) }},
		&cobra.Command{Use: "usage", Short: "docs/drive-usage.md", RunE: func(*cobra.Command, []string) error { return reference.Usage(a.out) }},
		&cobra.Command{Use: "events", Short: "docs/events.md", RunE: func(*cobra.Command, []string) error { return reference.Events(a.out) }},
		&cobra.Command{Use: "rules", Short: "docs/health-rules.md", RunE: func(*cobra.Command, []string) error { return health.Markdown(a.out, health.Default()) }},
	)
	return cmd
}
