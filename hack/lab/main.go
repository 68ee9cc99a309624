// Command lab starts emulated machines with drives of every kind: to build them,
// to look around in one, to watch a drive fail. docs/lab.md describes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drivebay/drivebay/hack/lab/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err == nil {
		return
	}
	stop()
	if e, ok := errors.AsType[*agent.ExitError](err); ok {
		os.Exit(e.Code) // the guest has said why
	}
	fmt.Fprintln(os.Stderr, "lab:", err)
	os.Exit(1)
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "Emulated machines with drives of every kind, to try things on and to break",
		Long: `Starts small emulated machines (QEMU, no KVM needed) with NVMe, SATA, SCSI, SAS, USB and
virtio drives. Everything comes from Debian packages and is kept in the cache: $DRIVEBAY_LAB_CACHE,
else /root/.cache/drivebay-lab and the like. The first start takes about a minute, later ones a second.`,
		Example: `  go run ./hack/lab shell
  go run ./hack/lab demo
  go test -exec 'go run github.com/drivebay/drivebay/hack/lab exec' ./internal/store`,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(buildCommand(), execCommand(), shellCommand(), demoCommand(), cleanCommand())
	return root
}
