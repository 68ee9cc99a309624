// Command registrar registers a CSI driver with the kubelet. It does what node-driver-registrar
// does, whose module does not resolve without a clone.
//
//	registrar DRIVER ENDPOINT REGISTRATION-SOCKET
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type server struct {
	registration.UnimplementedRegistrationServer
	driver, endpoint string
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: registrar DRIVER ENDPOINT REGISTRATION-SOCKET")
		os.Exit(2)
	}
	if err := serve(server{driver: os.Args[1], endpoint: os.Args[2]}, os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "registrar:", err)
		os.Exit(1)
	}
}

func serve(s server, socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	registration.RegisterRegistrationServer(g, s)
	return g.Serve(listener)
}

// GetInfo tells the kubelet which driver the endpoint serves.
func (s server) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: s.driver, Endpoint: s.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus writes to the log whether the kubelet accepted the driver.
func (s server) NotifyRegistrationStatus(_ context.Context, r *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Printf("%s: registered: %v %s\n", s.driver, r.GetPluginRegistered(), r.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}
