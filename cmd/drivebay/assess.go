package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/assess"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/spf13/cobra"
)

func (a *app) assessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "assess PATH...", Short: "Determine the health of recorded drives", Args: cobra.MinimumNArgs(1),
		Long: "Determines the health of drives from recorded evidence and prints one line per drive. PATH is\n" +
			"a document of `smartctl -x -j`, a file with one such document per line (.jsonl, .jsonl.gz),\n" +
			"raw ATA blocks, a recorded machine, or a directory of these. Below it are the problems of the\n" +
			"evidence, and the next steps for a drive that is not GOOD. The exit status is 0 whatever\n" +
			"the health of the drives is. Evidence that cannot be read is reported in its line.",
		Example: "  drivebay assess fleet.jsonl.gz -o json\n  smartctl -x -j /dev/sda > sda.json; drivebay assess sda.json",
	}
	out := outputFlag(cmd, "table", "json")
	count := cmd.Flags().Bool("table", false, "print the number of drives per verdict instead, by type and by kind of evidence")
	file := cmd.Flags().String("thresholds", "", "configuration file that contains the thresholds")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		style, err := a.style()
		if err != nil {
			return err
		}
		loaded, err := config.Load(config.Sources{File: *file})
		if err != nil {
			return err
		}
		opt := assess.Options{Thresholds: loaded.Thresholds, Recording: func(dir string) ([]assess.Subject, error) {
			return recordedDrives(cmd.Context(), dir, loaded.Thresholds)
		}}
		w := bufio.NewWriter(a.out)
		emit := printVerdict(w, style)
		if out.format == "json" {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			emit = func(v assess.Verdict) error { return enc.Encode(v) }
		}
		var table assess.Table
		if *count {
			emit = func(v assess.Verdict) error { table.Add(v); return nil }
		}
		if err := assess.Files(args, opt, emit); err != nil {
			return fmt.Errorf("assess: %w", err)
		}
		if *count {
			if err := table.Write(w); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	return cmd
}

// recordedDrives returns the drives of a recorded machine. They are judged as of the
// time of the recording.
func recordedDrives(ctx context.Context, dir string, th health.Thresholds) ([]assess.Subject, error) {
	machine, err := host.Recorded(dir)
	if err != nil {
		return nil, err
	}
	opt := drivemgr.DefaultOptions()
	opt.Thresholds = th
	s, err := drivemgr.ReadOnce(ctx, machine, opt)
	if err != nil {
		return nil, err
	}
	var out []assess.Subject
	for _, d := range render.Order(s.Drives) {
		out = append(out, assess.Subject{
			Name: d.Name, Serial: d.Serial, Model: d.Model,
			Input: health.Input{Evidence: d.Evidence, Kernel: d.Kernel, Type: d.Type, Transport: d.Transport, Protocol: d.Protocol, Now: s.At},
		})
	}
	return out, nil
}

// printVerdict returns a function that writes a verdict in one line: health, file, drive, reasons.
func printVerdict(w *bufio.Writer, s render.Style) func(assess.Verdict) error {
	return func(v assess.Verdict) error {
		if v.Err != nil {
			_, err := fmt.Fprintf(w, "%-7s  %s  %s\n", "ERROR", render.Clean(v.File), render.Clean(v.Err.Error()))
			return err
		}
		var why []string
		for _, r := range v.Reasons {
			why = append(why, r.Text)
		}
		pad := strings.Repeat(" ", max(0, len(drivebay.HealthSuspect.String())-len(v.Health.String())))
		line := fmt.Sprintf("%s%s  %s  %s  %s  %s", s.Health(v.Health), pad, render.Clean(v.File),
			render.Clean(orDash(v.Model)), render.Clean(orDash(v.Serial)), render.Clean(strings.Join(why, "; ")))
		for _, p := range v.Problems {
			line += "\n         problem: " + render.Clean(strings.TrimPrefix(p.Page+": ", ": ")+p.Text)
		}
		for i, r := range v.Reasons {
			if i == 0 || r.Advice != v.Reasons[i-1].Advice {
				line += "\n         next: " + render.Clean(r.Advice)
			}
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(line, " "))
		return err
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
