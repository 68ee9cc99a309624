// Command hyper is etcd, kubectl and the components of Kubernetes in one program: linked once, they
// take a fifth of the room. The name of the program selects the component, or the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers the metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // registers the metric of the version
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	component := filepath.Base(os.Args[0])
	if strings.HasPrefix(component, "hyper") { // with the version of Kubernetes
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: hyper COMPONENT [ARGUMENTS]")
			os.Exit(2)
		}
		os.Args = os.Args[1:]
		component = os.Args[0]
	}
	var c *cobra.Command
	switch component {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kubectl":
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	case "kube-apiserver":
		c = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		c = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		c = scheduler.NewSchedulerCommand()
	case "kubelet":
		c = kubelet.NewKubeletCommand(context.Background())
	default:
		fmt.Fprintf(os.Stderr, "hyper: no component %q\n", component)
		os.Exit(2)
	}
	os.Exit(cli.Run(c))
}
