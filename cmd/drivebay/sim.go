package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/daemon"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/simclient"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/spf13/cobra"
)

func (a simCommands) simCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sim", Short: "Inject faults into the drives of a simulated machine (`drivebay serve --sim FILE`)"}
	drives := &cobra.Command{Use: "drives", Short: "List the simulated drives and their injected faults"}
	drivesOut := outputFlag(drives, "table", "json", "yaml")
	drives.RunE = func(cmd *cobra.Command, _ []string) error {
		var list []hostsim.DriveView
		if err := simclient.Ask(cmd.Context(), a.api, http.MethodGet, "drives", nil, &list); err != nil {
			return err
		}
		return a.printAs(drivesOut, list, func(s render.Style) string { return simDrives(list, s) })
	}
	faults := &cobra.Command{Use: "faults", Short: "List the faults that can be injected"}
	faultsOut := outputFlag(faults, "table", "json", "yaml")
	faults.RunE = func(cmd *cobra.Command, _ []string) error {
		list := hostsim.FaultNames()
		return a.printAs(faultsOut, list, func(s render.Style) string {
			rows := make([][]string, len(list))
			for i, f := range list {
				rows[i] = []string{f.Name, f.Args, f.Text}
			}
			return render.Table([]string{"FAULT", "ARGUMENTS", "EFFECT"}, rows, s)
		})
	}
	fault := &cobra.Command{
		Use: "fault BAY|DRIVE FAULT [KEY=VALUE...]", Short: "Inject a fault", Args: cobra.MinimumNArgs(2),
		Long: "Injects a fault into the drive in a bay, or into the drive with this kernel name or serial number.\n" +
			"Faults of filesystems (fs-...) also accept a partition, a logical volume or a mount point.",
		Example: "  drivebay sim fault 7 vanish\n  drivebay sim fault sdc reallocate n=1200\n  drivebay sim fault sdc1 fs-corrupt\n  drivebay sim fault 7 heal",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.injectFault(cmd.Context(), args) },
	}
	cmd.AddCommand(drives, faults, fault)
	return cmd
}

// simulated opens the simulated machine that a file describes.
func simulated(path string) (daemon.Simulated, error) {
	m, err := hostsim.LoadFile(path)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func simDrives(list []hostsim.DriveView, s render.Style) string {
	rows := make([][]string, len(list))
	for i, d := range list {
		rows[i] = []string{orDash(d.Enclosure), orDash(d.Bay), orDash(d.Name), string(d.Kind), d.Model, orDash(d.Serial), render.Bytes(d.Size), strings.Join(d.Faults, ",")}
	}
	return render.Table([]string{"ENCLOSURE", "BAY", "NAME", "KIND", "MODEL", "SERIAL", "SIZE", "FAULTS"}, rows, s)
}

// injectFault sends one fault. The first argument is a drive if it is a drive's kernel
// name or serial, else a bay.
func (a simCommands) injectFault(ctx context.Context, args []string) error {
	f := hostsim.Fault{Fault: args[1], Args: hostsim.Args{}}
	for _, arg := range args[2:] {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return usage("%q: want KEY=VALUE", arg)
		}
		f.Args[key] = value
	}
	var list []hostsim.DriveView
	if err := simclient.Ask(ctx, a.api, http.MethodGet, "drives", nil, &list); err != nil {
		return err
	}
	target := strings.TrimPrefix(args[0], "/dev/")
	if slices.ContainsFunc(list, func(d hostsim.DriveView) bool { return target == d.Name || target == d.Serial }) {
		f.Drive = target
	} else {
		f.Bay = target
	}
	if err := simclient.Ask(ctx, a.api, http.MethodPost, "faults", f, nil); err != nil {
		return err
	}
	return a.print(fmt.Sprintf("%s: %s\n", args[0], f.Fault))
}
