// Package columns holds the flags that choose the columns of a list and its order.
package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

// Flags are --columns, --sort and --no-headers.
type Flags struct {
	known   []string // names of the columns
	columns []string
	sort    string
	bare    bool
}

// Add adds the flags to a command that lists these columns.
func Add(cmd *cobra.Command, known []string) *Flags {
	f := &Flags{known: known}
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "show these columns in this order: "+strings.Join(known, ", "))
	cmd.Flags().StringVar(&f.sort, "sort", "", "sort by this column; -COLUMN sorts in reverse")
	cmd.Flags().BoolVar(&f.bare, "no-headers", false, "print no heads, and no summary below the list")
	names := cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("columns", names)
	_ = cmd.RegisterFlagCompletionFunc("sort", names)
	return f
}

// Check converts the names to lower case and refuses unknown ones.
func (f *Flags) Check() error {
	for i := range f.columns {
		f.columns[i] = strings.ToLower(strings.TrimSpace(f.columns[i]))
		if err := f.check("--columns", f.columns[i]); err != nil {
			return err
		}
	}
	if f.sort = strings.ToLower(f.sort); f.sort == "" {
		return nil
	}
	return f.check("--sort", strings.TrimPrefix(f.sort, "-"))
}

func (f *Flags) check(flag, name string) error {
	if slices.Contains(f.known, name) {
		return nil
	}
	if near, ok := config.Nearest(name, f.known); ok {
		return fmt.Errorf("%s: no column %q: did you mean %q?", flag, name, near)
	}
	return fmt.Errorf("%s: no column %q: want %s", flag, name, strings.Join(f.known, ", "))
}

// Layout returns the layout that the flags ask for.
func (f *Flags) Layout(wide bool) render.Layout {
	return render.Layout{Wide: wide, Columns: f.columns, Sort: f.sort, Bare: f.bare}
}
