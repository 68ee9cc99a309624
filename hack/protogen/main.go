// Command protogen writes the Go of a proto file beside it. It reads the file itself, so
// that no protoc has to be installed, and leaves the writing to protoc's own plugins for
// Go, in the versions that go.mod pins.
//
//	go -C hack/protogen run . ../../addons healer/healer.proto
//
// The first argument is the folder that the name of the file counts from.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

// csiProto is the name by which the proto files of CSI-Addons import that of CSI.
const csiProto = "github.com/container-storage-interface/spec/lib/go/csi/csi.proto"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen FOLDER FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(folder, file string) error {
	sources := protocompile.CompositeResolver{
		&protocompile.SourceResolver{ImportPaths: []string{folder}},
		protocompile.ResolverFunc(linked),
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(sources), SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{file}, Parameter: proto.String("paths=source_relative"), ProtoFile: withImports(files[0])}
	for _, plugin := range plugins {
		if err := generate(plugin, request, folder); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// linked finds the one import that is in this program already.
func linked(path string) (protocompile.SearchResult, error) {
	if path != csiProto {
		return protocompile.SearchResult{}, os.ErrNotExist
	}
	d := protodesc.ToFileDescriptorProto(csi.File_csi_proto)
	d.Name = proto.String(csiProto)
	return protocompile.SearchResult{Proto: d}, nil
}

// withImports lists a file after all that it imports, as plugins want them.
func withImports(file linker.File) []*descriptorpb.FileDescriptorProto {
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protoutil.ProtoFromFileDescriptor(f))
	}
	add(file)
	return all
}

func generate(plugin string, request *pluginpb.CodeGeneratorRequest, folder string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	var answer pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out.Bytes(), &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("%s", answer.GetError())
	}
	for _, f := range answer.File {
		if err := os.WriteFile(filepath.Join(folder, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
