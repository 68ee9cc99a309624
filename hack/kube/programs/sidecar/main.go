// Command sidecar is node-driver-registrar and livenessprobe, whose modules do not resolve without a clone of their
// repositories: the flags that the chart gives them, and what they do with these. Its own name, or its first argument, selects one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: sidecar registrar|livenessprobe [FLAGS]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	address := flags.String("csi-address", "/csi/csi.sock", "socket of the driver")
	path := flags.String("kubelet-registration-path", "", "socket of the driver on the node")
	endpoint := flags.String("http-endpoint", ":9808", "address of /healthz")
	timeout := flags.Duration("probe-timeout", time.Second, "limit of one Probe")
	_ = flags.Parse(os.Args[2:])
	conn, err := grpc.NewClient("unix://"+*address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		switch os.Args[1] {
		case "registrar":
			err = register(csi.NewIdentityClient(conn), *path)
		case "livenessprobe":
			err = serveHealth(csi.NewIdentityClient(conn), *endpoint, *timeout)
		default:
			err = errors.New("no such sidecar")
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
	os.Exit(1)
}

// register serves the kubelet's registration of the driver, once the driver says its name.
func register(driver csi.IdentityClient, endpoint string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	info, err := driver.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	socket := filepath.Join("/registration", info.GetName()+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	registration.RegisterRegistrationServer(g, registrar{driver: info.GetName(), endpoint: endpoint})
	return g.Serve(listener)
}

type registrar struct {
	registration.UnimplementedRegistrationServer
	driver, endpoint string
}

// GetInfo tells the kubelet which driver the endpoint serves.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.driver, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus ends the program if the kubelet does not accept the driver: the restart registers it again.
func (r registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Printf("%s: registered: %v %s\n", r.driver, s.GetPluginRegistered(), s.GetError())
	if !s.GetPluginRegistered() {
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// serveHealth answers /healthz with the driver's answer to Probe.
func serveHealth(driver csi.IdentityClient, endpoint string, timeout time.Duration) error {
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		probe, err := driver.Probe(ctx, &csi.ProbeRequest{})
		if err == nil && probe.GetReady() != nil && !probe.GetReady().GetValue() {
			err = errors.New("not ready")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return http.ListenAndServe(endpoint, nil)
}
