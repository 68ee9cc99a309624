package main

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/local"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/assess"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

func (a *app) assessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "assess PATH...", Short: "Determine the health of recorded drives", Args: cobra.MinimumNArgs(1),
		Long: "Determines the health of drives from recorded evidence and prints one line per drive. PATH is\n" +
			"a document of `smartctl -x -j`, a file with one such document per line (.jsonl, .jsonl.gz),\n" +
			"raw ATA blocks, a recorded machine, or a directory of these. Below it are the problems of the\n" +
			"evidence, and the next steps for a drive that is not GOOD. The exit status is 0 whatever\n" +
			"the health of the drives is. Evidence that cannot be read is reported in its line.\n\n" +
			"With -x only drives that are not GOOD are printed, and the exit status is that of the worst drive:\n" +
			"0 all are GOOD, 3 SUSPECT, 4 BAD, 5 UNKNOWN or evidence that cannot be read. The worst one\n" +
			"counts: 4, 3, 5, 0.",
		Example: "  drivebay assess fleet.jsonl.gz -o json\n  smartctl -x -j /dev/sda > sda.json; drivebay assess sda.json",
	}
	out := outputFlag(cmd, "table", "json")
	count := cmd.Flags().Bool("table", false, "print the number of drives per verdict instead, by type and by kind of evidence")
	short := cmd.Flags().BoolP("wrong", "x", false, "print only drives that are not GOOD, and set the exit status")
	file := cmd.Flags().String("thresholds", "", "configuration file that contains the thresholds")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *short && *count {
			return usage("-x and --table cannot be used together")
		}
		style, err := a.style()
		if err != nil {
			return err
		}
		loaded, err := config.Load(config.Sources{File: *file})
		if err != nil {
			return err
		}
		opt := assess.Options{Thresholds: loaded.Thresholds, Recording: func(dir string) ([]assess.Subject, error) {
			return local.Subjects(cmd.Context(), dir, loaded.Thresholds)
		}}
		w := bufio.NewWriter(a.out)
		emit := func(v assess.Verdict) error { _, err := w.WriteString(render.Verdict(v, style)); return err }
		if out.format == "json" {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			emit = func(v assess.Verdict) error { return enc.Encode(v) }
		}
		var table assess.Table
		if *count {
			emit = func(v assess.Verdict) error { table.Add(v); return nil }
		}
		worst := overview.Fine
		if *short {
			emit = onlyWrong(emit, &worst)
		}
		if err := assess.Files(args, opt, emit); err != nil {
			if err = fmt.Errorf("assess: %w", err); *short {
				return cannotTell(err)
			}
			return err
		}
		if *count {
			if err := table.Write(w); err != nil {
				return err
			}
		}
		if *short && worst == overview.Fine && out.format == "table" {
			fmt.Fprint(w, render.AllFine("drives"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		return verdictError(worst)
	}
	return cmd
}

// onlyWrong returns a function that passes on the verdicts on drives that are not GOOD, and keeps the
// worst one.
func onlyWrong(emit func(assess.Verdict) error, worst *overview.Verdict) func(assess.Verdict) error {
	return func(v assess.Verdict) error {
		is := overview.OfHealth(v.Health)
		if v.Err != nil {
			is = overview.CannotTell
		}
		if is == overview.Fine {
			return nil
		}
		*worst = max(*worst, is)
		return emit(v)
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
