// Command agnhost is what Kubernetes' storage tests run of the program of that name, and nothing more. The whole brings
// a hundred other commands and their modules.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/test/images/agnhost/mounttest"
	"k8s.io/kubernetes/test/images/agnhost/pause"
)

func main() {
	c := &cobra.Command{Use: "agnhost"}
	c.AddCommand(mounttest.CmdMounttest, pause.CmdPause)
	os.Exit(cli.Run(c))
}
