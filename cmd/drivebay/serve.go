package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/daemon"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

const configFileDoc = "configuration file (also $DRIVEBAY_CONFIG); empty: " + config.SystemFile + ", if it exists, for root"

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the daemon that manages the drives",
		Long: "Monitors the drives of this machine and serves the API on a unix socket. Flags override\nDRIVEBAY_* variables, variables override the configuration file, and the file overrides the\ndefaults. Without --config, root's daemon reads /etc/drivebay/drivebay.yaml if it exists, unless it\nmanages a simulated or recorded machine. SIGHUP reloads the configuration, SIGTERM stops the daemon.",
		Example: "  drivebay serve --listen 127.0.0.1:10748\n" +
			"  drivebay serve --sim examples/rack24.yaml --state-dir /tmp/rack --api unix:///tmp/rack.sock",
	}
	file := cmd.Flags().String("config", a.getenv("DRIVEBAY_CONFIG"), configFileDoc)
	given := configFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.local {
			return usage("--local cannot be used with `drivebay serve`: it is for commands that run without the daemon")
		}
		load := func() (config.Loaded, error) {
			return config.Load(config.Sources{File: *file, Usual: a.place().File(), Env: csiEndpoint(a.environ), Flags: given()})
		}
		loaded, err := load()
		if err != nil {
			return fmt.Errorf("the configuration is invalid:\n%w", err)
		}
		v, commit := buildVersion()
		return daemon.Run(cmd.Context(), loaded, daemon.Options{Load: load, Simulate: a.simulate, Place: a.place(), Out: a.out, Err: a.err, Version: v, Commit: commit})
	}
	return cmd
}

// csiEndpoint adds DRIVEBAY_CSI_ENDPOINT to the environment where only CSI_ENDPOINT is
// set, which the CSI specification names for plugins.
func csiEndpoint(environ []string) []string {
	const ours, theirs = "DRIVEBAY_CSI_ENDPOINT=", "CSI_ENDPOINT="
	is := func(prefix string) int {
		return slices.IndexFunc(environ, func(e string) bool { return strings.HasPrefix(e, prefix) })
	}
	i := is(theirs)
	if i < 0 || is(ours) >= 0 || environ[i] == theirs {
		return environ
	}
	return append(slices.Clone(environ), ours+strings.TrimPrefix(environ[i], theirs))
}
