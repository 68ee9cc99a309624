// Package csitest runs csi-sanity, the suite that every CSI plugin has to pass,
// against a plugin of ours, whatever machine it runs on.
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
	// Snapshots says that the plugin has them; without, the tests of snapshots and
	// clones are left out.
	Snapshots bool
	// Only says of what kind the tests are that are run, by words of their names;
	// none: all of them. It is for machines where a volume takes a long time.
	Only []string
}

// Paths makes and looks at paths where the plugin is, which may be a machine that
// is simulated, or another one.
type Paths interface {
	MakeFolder(path string) error // with the folders above it
	Remove(path string) error     // of an empty folder
	Look(path string) (sanity.PathKind, error)
}

// Config is for the plugin at an endpoint, "unix:///csi.sock", that may mount
// below a root. Without Paths they are those of this machine, where the folders
// "pods" and "plugins" of the root have to be.
func Config(endpoint, root string, at Paths) sanity.TestConfig {
	c := sanity.NewTestConfig()
	c.Address = endpoint
	c.DialOptions = append(c.DialOptions, grpc.WithChainUnaryInterceptor(sized))
	c.TargetPath, c.StagingPath = root+"/pods/sanity", root+"/plugins/sanity"
	if at != nil {
		c.CreateTargetDir = func(path string) (string, error) { return path, at.MakeFolder(path) }
		c.CreateStagingDir = c.CreateTargetDir
		c.RemoveTargetPath, c.RemoveStagingPath = at.Remove, at.Remove
		c.CheckPath = at.Look
	}
	return c
}

// For is a pass for volumes of a backing, with a filesystem or without. A plugin
// that has snapshots has them of thin volumes only, and the suite takes them of
// whatever it makes: other backings are for a plugin that says it has none.
func For(c sanity.TestConfig, snapshots bool, backing drivebay.Backing, block bool) Run {
	name := string(backing) + " with a filesystem"
	if block {
		name = string(backing) + " as a block device"
		c.TestVolumeAccessType = "block"
	}
	c.TestVolumeParameters = map[string]string{drivebay.ParameterBacking: string(backing)}
	if !snapshots {
		c.DialOptions = append(slices.Clone(c.DialOptions), grpc.WithChainUnaryInterceptor(thick))
	}
	return Run{Name: name, Config: c, Snapshots: snapshots}
}

// Sealed is a pass for encrypted volumes: every call that has a place for secrets
// brings the passphrase.
func Sealed(r Run, passphrase string) Run {
	r.Name += ", encrypted"
	r.Config.TestVolumeParameters[drivebay.ParameterEncryption] = drivebay.EncryptionLUKS2
	r.Config.DialOptions = append(slices.Clone(r.Config.DialOptions), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
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
		}))
	return r
}

// sized measures every answer. The suite compares a topology that it got with one
// that it has sent by reflect.DeepEqual (controller.go, "with accessibility
// requirements"), and a message that was sent remembers its size.
func sized(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, conn, opts...)
	if m, ok := reply.(proto.Message); ok {
		proto.Size(m)
	}
	return err
}

// thick leaves snapshots out of what a plugin says that it can do.
func thick(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, conn, opts...)
	if r, ok := reply.(*csi.ControllerGetCapabilitiesResponse); ok {
		r.Capabilities = slices.DeleteFunc(r.Capabilities, func(c *csi.ControllerServiceCapability) bool {
			kind := c.GetRpc().GetType().String()
			return strings.Contains(kind, "SNAPSHOT") || strings.Contains(kind, "CLONE")
		})
	}
	return err
}

// skips are the reasons for which a test may leave itself out: what we do not
// advertise.
var skips = []string{
	"ControllerPublishVolume not supported", "Controller Publish, UnpublishVolume not supported", "ControllerUnpublishVolume not supported", // a volume is on its node already
	"ControllerModifyVolume not supported", "Modify volume not supported", "Modify Volume not supported", // nothing of a volume changes in place
	"GroupControllerService not supported", // snapshots of several volumes are not of one moment
}

// Sanity runs the suite over all runs. Ginkgo has one tree of tests for each
// process, so a test binary calls this once.
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
	ginkgo.ReportAfterSuite("what was left out", func(r types.Report) {
		for _, spec := range r.SpecReports {
			if spec.LeafNodeType != types.NodeTypeIt {
				continue
			}
			run, why := spec.ContainerHierarchyTexts[0], spec.Failure.Message
			switch {
			case spec.State.Is(types.SpecStatePassed):
				passed[run]++
			case spec.State.Is(types.SpecStateSkipped) && why == "" && by[run].Only != nil: // out of focus
			case spec.State.Is(types.SpecStateSkipped) && !mayLeaveOut(why, by[run].Snapshots):
				t.Errorf("%s: left out and should not be: %s: %s", run, spec.LeafNodeText, why)
			}
		}
	})
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "csi-sanity", suite, reporter)
	for _, r := range runs {
		t.Logf("%s: %d tests passed", r.Name, passed[r.Name])
		if passed[r.Name] < 50 && r.Only == nil || passed[r.Name] < len(r.Only) {
			t.Errorf("%s: that is too few", r.Name)
		}
	}
}

// focus is what the full names of its tests match.
func (r Run) focus() string {
	return regexp.QuoteMeta(" "+r.Name+" ") + ".*(" + strings.Join(r.Only, "|") + ")"
}

func mayLeaveOut(why string, snapshots bool) bool {
	if !snapshots && (strings.Contains(why, "Snapshot") || strings.Contains(why, "Cloning") || strings.Contains(why, "SNAPSHOT")) {
		return true
	}
	return slices.Contains(skips, why)
}
