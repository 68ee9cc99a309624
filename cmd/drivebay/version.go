package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

// buildVersion returns the version that the linker set, else the module's, and the commit.
func buildVersion() (linked, commit string) {
	linked = version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return linked, ""
	}
	if linked == "" {
		linked = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return linked, commit
}

// versionText is what `drivebay version` and `drivebay --version` print.
func versionText() string {
	v, _ := buildVersion()
	return fmt.Sprintf("drivebay %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version"}
	out := outputFlag(cmd, "text", "json")
	cmd.RunE = func(*cobra.Command, []string) error {
		v, commit := buildVersion()
		if out.format == "json" {
			return a.printAs(out, map[string]string{"version": v, "commit": commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}, nil)
		}
		return a.print(versionText())
	}
	return cmd
}
