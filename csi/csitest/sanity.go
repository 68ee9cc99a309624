// Package csitest runs csi-sanity, the conformance suite for CSI plugins, against a plugin
// of drivebay on any machine.
package csitest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Run is one pass of the suite.
type Run struct {
	Name   string
	Config sanity.TestConfig
	// Snapshots is true if the plugin supports snapshots and clones; without, the run skips
	// the tests of them.
	Snapshots bool
	// Only holds words of the names of the tests to run; empty: all tests. It is for
	// machines on which the creation of a volume takes long.
	Only []string
}

// Paths creates, removes and reads paths on the machine of the plugin, which may be simulated or
// remote.
type Paths interface {
	MakeFolder(path string) error // with the folders above it
	Remove(path string) error     // of an empty folder
	Kind(path string) (sanity.PathKind, error)
}

// Config returns the configuration for the plugin at an endpoint, such as "unix:///csi.sock", that
// may mount below root. If at is nil, the plugin is on this machine, and root must contain the
// directories "pods" and "plugins".
func Config(endpoint, root string, at Paths) sanity.TestConfig {
	c := sanity.NewTestConfig()
	c.Address = endpoint
	intercept(&c, measureAnswer)
	c.TargetPath, c.StagingPath = root+"/pods/sanity", root+"/plugins/sanity"
	if at != nil {
		c.CreateTargetDir = func(path string) (string, error) { return path, at.MakeFolder(path) }
		c.CreateStagingDir = c.CreateTargetDir
		c.RemoveTargetPath, c.RemoveStagingPath = at.Remove, at.Remove
		c.CheckPath = at.Kind
	}
	return c
}

// NewRun returns a run for volumes of one backing, with a filesystem or as block devices. Only thin
// volumes have snapshots, but the suite takes snapshots of every volume that it creates: for other
// backings snapshots has to be false, and the plugin appears not to support them.
func NewRun(c sanity.TestConfig, snapshots bool, backing drivebay.Backing, block bool) Run {
	name := string(backing) + " with a filesystem"
	if block {
		name = string(backing) + " as a block device"
		c.TestVolumeAccessType = "block"
	}
	c.TestVolumeParameters = map[string]string{drivebay.ParameterBacking: string(backing)}
	if !snapshots {
		intercept(&c, hideSnapshots)
	}
	return Run{Name: name, Config: c, Snapshots: snapshots}
}

// Encrypted returns the run with encrypted volumes: every call with a field for secrets contains
// the passphrase.
func Encrypted(r Run, passphrase string) Run {
	r.Name += ", encrypted"
	r.Config.TestVolumeParameters[drivebay.ParameterEncryption] = drivebay.EncryptionLUKS2
	intercept(&r.Config, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		secrets := map[string]string{drivebay.SecretPassphrase: passphrase}
		switch r := req.(type) {
		case *csi.CreateVolumeRequest:
			r.Secrets = secrets
		case *csi.NodeStageVolumeRequest:
			r.Secrets = secrets
		case *csi.NodeExpandVolumeRequest:
			r.Secrets = secrets
		}
		return call(ctx, method, req, reply, conn, opts...)
	})
	return r
}

// intercept adds an interceptor to the connections to both services.
func intercept(c *sanity.TestConfig, f grpc.UnaryClientInterceptor) {
	c.DialOptions = append(slices.Clone(c.DialOptions), grpc.WithChainUnaryInterceptor(f))
	c.ControllerDialOptions = append(slices.Clone(c.ControllerDialOptions), grpc.WithChainUnaryInterceptor(f))
}

// measureAnswer computes the size of every answer, which the message caches. The suite compares a
// topology from an answer with one that it has sent by reflect.DeepEqual (controller.go, "with
// accessibility requirements"), and a message that was sent has its size cached.
func measureAnswer(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, conn, opts...)
	if m, ok := reply.(proto.Message); ok {
		proto.Size(m)
	}
	return err
}

// hideSnapshots removes snapshots and clones from the capabilities of a plugin.
func hideSnapshots(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, conn, opts...)
	if r, ok := reply.(*csi.ControllerGetCapabilitiesResponse); ok {
		r.Capabilities = slices.DeleteFunc(r.Capabilities, func(c *csi.ControllerServiceCapability) bool {
			kind := c.GetRpc().GetType().String()
			return strings.Contains(kind, "SNAPSHOT") || strings.Contains(kind, "CLONE")
		})
	}
	return err
}

// skips holds the messages with which a test may skip itself: capabilities that the plugin does
// not advertise.
var skips = []string{
	"ControllerPublishVolume not supported", "Controller Publish, UnpublishVolume not supported", "ControllerUnpublishVolume not supported", // a volume is always on its node
	"ControllerModifyVolume not supported", "Modify volume not supported", "Modify Volume not supported", // drivebay has no mutable parameters
	"GroupControllerService not supported", // drivebay cannot take snapshots of several volumes at one moment
}

// Sanity runs the suite for all runs. Ginkgo has one tree of tests per process, so a test binary
// calls Sanity once.
func Sanity(t *testing.T, runs ...Run) {
	passed := map[string]int{}
	by := map[string]*Run{}
	suite, reporter := ginkgo.GinkgoConfiguration()
	for i := range runs {
		r := &runs[i]
		by[r.Name] = r
		suite.FocusStrings = append(suite.FocusStrings, r.focus())
		ginkgo.Describe(r.Name, func() { sanity.GinkgoTest(&r.Config) })
	}
	ginkgo.ReportAfterSuite("skipped tests", func(r types.Report) {
		for _, spec := range r.SpecReports {
			if spec.LeafNodeType != types.NodeTypeIt {
				continue
			}
			run, why := spec.ContainerHierarchyTexts[0], spec.Failure.Message
			switch {
			case spec.State.Is(types.SpecStatePassed):
				passed[run]++
			case spec.State.Is(types.SpecStateSkipped) && why == "" && by[run].Only != nil: // out of focus
			case spec.State.Is(types.SpecStateSkipped) && !maySkip(why, by[run].Snapshots):
				t.Errorf("%s: skipped without a known reason: %s: %s", run, spec.LeafNodeText, why)
			}
		}
	})
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "csi-sanity", suite, reporter)
	for _, r := range runs {
		t.Logf("%s: %d tests passed", r.Name, passed[r.Name])
		if passed[r.Name] < 50 && r.Only == nil || passed[r.Name] < len(r.Only) {
			t.Errorf("%s: too few tests passed", r.Name)
		}
	}
}

// focus returns the regular expression that the full names of the tests of a run match.
func (r Run) focus() string {
	return regexp.QuoteMeta(" "+r.Name+" ") + ".*(" + strings.Join(r.Only, "|") + ")"
}

func maySkip(why string, snapshots bool) bool {
	if !snapshots && (strings.Contains(why, "Snapshot") || strings.Contains(why, "Cloning") || strings.Contains(why, "SNAPSHOT")) {
		return true
	}
	return slices.Contains(skips, why)
}
