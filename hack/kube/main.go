// Command kube runs a Kubernetes cluster of one node on this machine, with drivebay as its CSI driver.
//
//	go run ./hack/kube build   make the programs and images in .cache/kube, unless they are there
//	go run ./hack/kube up      start the cluster; ctrl-c ends it
//	go run ./hack/kube down    remove what a killed run left
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
			err = cluster.Build(ctx, root)
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
	if err := cluster.Build(ctx, root); err != nil {
		return err
	}
	built := time.Now()
	c, err := cluster.Up(ctx, root)
	if err != nil {
		return err
	}
	fmt.Printf("built in %.1f s, node ready after %.1f s more; logs in %s\n", built.Sub(began).Seconds(), time.Since(built).Seconds(), filepath.Join(root, ".cache/kube/logs"))
	fmt.Printf("kubectl: %s\n", c.Command(ctx, filepath.Join(root, ".cache/kube/bin/hyper"), "kubectl", "--kubeconfig", filepath.Join(root, ".cache/kube/run/pki/admin.kubeconfig")))
	fmt.Printf("drivebay: %s --api %s\n", filepath.Join(root, ".cache/kube/bin/drivebay"), c.API())
	<-ctx.Done()
	return c.Down()
}
