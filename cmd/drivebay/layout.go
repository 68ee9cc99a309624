package main

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

// listFlags are the flags that say how a list is drawn.
type listFlags struct {
	*output
	known   []string // names of the columns
	columns []string
	sort    string
	bare    bool
}

// newListFlags adds -o, --columns, --sort and --no-headers to a command. The command does not run with
// an unknown column.
func newListFlags(cmd *cobra.Command, known []string) *listFlags {
	f := &listFlags{output: outputFlag(cmd, "table", "wide", "json", "yaml"), known: known}
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "show these columns in this order: "+strings.Join(known, ", "))
	cmd.Flags().StringVar(&f.sort, "sort", "", "sort by this column; -COLUMN sorts in reverse")
	cmd.Flags().BoolVar(&f.bare, "no-headers", false, "print no heads, and no summary below the list")
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check() }
	names := cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("columns", names)
	_ = cmd.RegisterFlagCompletionFunc("sort", names)
	return f
}

func (f *listFlags) check() error {
	for i := range f.columns {
		f.columns[i] = strings.ToLower(strings.TrimSpace(f.columns[i]))
		if err := f.checkColumn("--columns", f.columns[i]); err != nil {
			return err
		}
	}
	if f.sort = strings.ToLower(f.sort); f.sort != "" {
		if err := f.checkColumn("--sort", strings.TrimPrefix(f.sort, "-")); err != nil {
			return err
		}
	}
	return f.output.check()
}

func (f *listFlags) checkColumn(flag, name string) error {
	if slices.Contains(f.known, name) {
		return nil
	}
	if near, ok := config.Nearest(name, f.known); ok {
		return usage("%s: no column %q: did you mean %q?", flag, name, near)
	}
	return usage("%s: no column %q: want %s", flag, name, strings.Join(f.known, ", "))
}

func (f *listFlags) layout() render.Layout {
	return render.Layout{Wide: f.format == "wide", Columns: f.columns, Sort: f.sort, Bare: f.bare}
}
