package csi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Calls returns the name of every RPC of CSI ("Node.NodeGetInfo"), in the order of csi.proto.
func Calls() []string {
	var out []string
	services := wire.File_csi_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			out = append(out, string(services.Get(i).Name())+"."+string(methods.Get(j).Name()))
		}
	}
	return out
}

// Call makes one RPC by its name, with or without the name of the service, and returns the
// answer. Request and answer are CSI messages as JSON.
func Call(ctx context.Context, endpoint, name, request string) (string, error) {
	service, method, err := findCall(name)
	if err != nil {
		return "", err
	}
	in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if request != "" {
		if err := protojson.Unmarshal([]byte(request), in); err != nil {
			return "", fmt.Errorf("the request is not a %s: %w", method.Input().Name(), err)
		}
	}
	if strings.HasPrefix(endpoint, "/") { // a bare path
		endpoint = "unix:" + endpoint
	}
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", fmt.Errorf("%s: %w", endpoint, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := conn.Invoke(ctx, fmt.Sprintf("/%s/%s", service.FullName(), method.Name()), in, out); err != nil {
		return "", err
	}
	b, err := protojson.MarshalOptions{Multiline: true, EmitUnpopulated: true}.Marshal(out)
	return string(b), err
}

func findCall(name string) (protoreflect.ServiceDescriptor, protoreflect.MethodDescriptor, error) {
	want := name[strings.LastIndex(name, ".")+1:]
	i := slices.IndexFunc(Calls(), func(c string) bool { return strings.EqualFold(c[strings.Index(c, ".")+1:], want) })
	if i < 0 {
		return nil, nil, fmt.Errorf("CSI has no call %q; `drivebay csi` lists the calls", name)
	}
	service, method, _ := strings.Cut(Calls()[i], ".")
	file, err := shape()
	if err != nil {
		return nil, nil, fmt.Errorf("csi.proto with VolumeCondition: %w", err)
	}
	s := file.Services().ByName(protoreflect.Name(service))
	return s, s.Methods().ByName(protoreflect.Name(method)), nil
}
