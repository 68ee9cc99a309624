package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay/csi"
	"github.com/spf13/cobra"
)

func (a *app) csiCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "csi [CALL [REQUEST]]", Short: "Call an RPC of the Container Storage Interface and print the response",
		Long: "Makes one call to a CSI plugin, drivebay or another one, and prints the response as JSON. CALL\n" +
			"is the name of the RPC in the CSI specification, REQUEST is the request message as JSON. If\n" +
			"REQUEST is -, the command reads the message from standard input; use this for a message with\n" +
			"secrets. Without CALL the command lists all calls.",
		Example: "  drivebay csi NodeGetStorageHealth --endpoint unix:///run/drivebay/csi.sock\n" +
			"  drivebay csi GetCapacity '{\"parameters\": {\"drivebay.io/class\": \"nvme\"}}'",
	}
	cmd.Args = cobra.MaximumNArgs(2)
	fallback := a.getenv("CSI_ENDPOINT")
	if fallback == "" {
		fallback = "unix:///run/drivebay/csi.sock"
	}
	endpoint := cmd.Flags().String("endpoint", fallback, "socket of the plugin (also $CSI_ENDPOINT)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return a.print(strings.Join(csi.Calls(), "\n") + "\n")
		}
		request := ""
		if len(args) > 1 {
			request = args[1]
		}
		if request == "-" {
			b, err := io.ReadAll(a.in)
			if err != nil {
				return fmt.Errorf("read the request from standard input: %w", err)
			}
			request = string(b)
		}
		answer, err := csi.Call(cmd.Context(), *endpoint, args[0], request)
		if err != nil {
			return err
		}
		return a.print(answer + "\n")
	}
	return cmd
}
