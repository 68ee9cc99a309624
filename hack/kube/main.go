// Command kube runs a Kubernetes cluster of one node on this machine, in which the chart of drivebay is installed.
//
//	go run ./hack/kube build   make the programs and images in .cache/kube, unless they are there
//	go run ./hack/kube up      start the cluster; ctrl-c ends it
//	go run ./hack/kube down    remove what a killed run left
//
// KUBERNETES in the environment is the version, v1.36.3 (the default) or v1.37.1.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drivebay/drivebay/hack/kube/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		usage()
	}
	root, err := os.Getwd()
	if err == nil {
		switch os.Args[1] {
		case "build":
			err = cluster.Build(ctx, root, cluster.Version())
		case "up":
			err = up(ctx, root)
		case "down":
			err = cluster.Clean(ctx, root)
		default:
			usage()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: kube build|up|down")
	os.Exit(2)
}

// up runs a cluster until ctx ends.
func up(ctx context.Context, root string) error {
	began := time.Now()
	if err := cluster.Build(ctx, root, cluster.Version()); err != nil {
		return err
	}
	built := time.Now()
	c, err := cluster.Up(ctx, root, cluster.Version())
	if err != nil {
		return err
	}
	fmt.Printf("built in %.1f s, chart installed after %.1f s more; logs in %s\n", built.Sub(began).Seconds(), time.Since(built).Seconds(), filepath.Join(root, ".cache/kube/logs"))
	fmt.Printf("kubectl: %s\n", c.Command(ctx, filepath.Join(root, ".cache/kube/run/path/kubectl"), "--kubeconfig", filepath.Join(root, ".cache/kube/run/pki/admin.kubeconfig")))
	fmt.Printf("drivebay: %s\n", c.Drivebay(ctx))
	<-ctx.Done()
	return c.Down()
}
