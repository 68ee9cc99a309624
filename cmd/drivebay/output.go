package main

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/columns"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/jsonpath"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// output is the -o flag of a command.
type output struct {
	format   string
	known    []string
	template *jsonpath.Template // of -o jsonpath=TEMPLATE
}

const jsonpathFormat = "jsonpath="

// outputFlag adds -o to a command; the first format is the default. The command does not run
// with another format.
func outputFlag(cmd *cobra.Command, formats ...string) *output {
	o := &output{known: formats}
	if slices.Contains(formats, "yaml") { // the output is one document
		formats = append(slices.Clone(formats), jsonpathFormat+"TEMPLATE")
		o.known = formats
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", formats[0], "output format: "+strings.Join(formats, ", "))
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.check() }
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *output) check() (err error) {
	if text, ok := strings.CutPrefix(o.format, jsonpathFormat); ok && slices.Contains(o.known, jsonpathFormat+"TEMPLATE") {
		if o.template, err = jsonpath.Parse(text); err != nil {
			return usage("-o: %w", err)
		}
		return nil
	}
	if !slices.Contains(o.known, o.format) {
		return usage("-o %q: want %s", o.format, strings.Join(o.known, ", "))
	}
	return nil
}

// listFlags are the flags of a command that prints a list.
type listFlags struct {
	*output
	*columns.Flags
}

// newListFlags adds -o, --columns, --sort and --no-headers to a command. The command does not run with
// an unknown column.
func newListFlags(cmd *cobra.Command, known []string) *listFlags {
	f := &listFlags{outputFlag(cmd, "table", "wide", "json", "yaml"), columns.Add(cmd, known)}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if err := f.Check(); err != nil {
			return usageError{err}
		}
		return f.check()
	}
	return f
}

func (f *listFlags) layout() render.Layout { return f.Layout(f.format == "wide") }

// printAs writes a value in the format of -o: as JSON, as YAML, by a template, or drawn by draw.
func (a *app) printAs(o *output, value any, draw func(render.Style) string) error {
	var text string
	var err error
	switch {
	case o.template != nil:
		if text, err = o.template.Print(value); err == nil && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
	case o.format == "json":
		text, err = render.JSON(value)
	case o.format == "yaml":
		text, err = render.YAML(value)
	default:
		var s render.Style
		if s, err = a.style(); err == nil {
			text = draw(s)
		}
	}
	if err != nil {
		return err
	}
	return a.print(text)
}
