package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/drivebay/drivebay/hack/lab/image"
)

// Versions of Kubernetes. They differ in what the kubelet says of a volume's health (docs/kubernetes.md).
const (
	Version136 = "v1.36.3"
	Version137 = "v1.37.1"
)

// Version is the version of Kubernetes that the environment asks for.
func Version() string { return cmp.Or(os.Getenv("KUBERNETES"), Version136) }

// product is a program that is built from a module of this repository.
type product struct {
	name, module, pkg string
	test              bool   // a program of tests
	version           string // of Kubernetes, in a program that knows it
}

// kubernetes is etcd, kubectl and the components of Kubernetes in one program: all that an API server needs.
func kubernetes(version string) product {
	return product{name: program(version), module: "hack/kube/programs", pkg: "./hyper", version: version}
}

// program is the name of the program of a version of Kubernetes.
func program(version string) string {
	if version == Version136 {
		return "hyper"
	}
	return "hyper-" + version
}

// products are what a node and its tests need beside.
var products = []product{
	{name: "sidecar", module: "hack/kube/programs", pkg: "./sidecar", version: Version136},
	{name: "csi-provisioner", module: "hack/kube/programs", pkg: "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner", version: Version136},
	{name: "csi-resizer", module: "hack/kube/tools", pkg: "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer"},
	{name: "helm", module: "hack/kube/tools", pkg: "helm.sh/helm/v3/cmd/helm"},
	{name: "agnhost", module: "hack/kube/programs", pkg: "./agnhost", version: Version136},
	{name: "ginkgo", module: "hack/kube/programs", pkg: "github.com/onsi/ginkgo/v2/ginkgo", version: Version136},
	{name: "csi-addons-manager", module: addonsModule, pkg: addonsPackage + "/cmd/manager"},
	{name: "csi-addons-sidecar", module: addonsModule, pkg: addonsPackage + "/sidecar"},
	{name: "e2e.test", module: "hack/kube/programs", pkg: "./e2e", test: true, version: Version136},
}

// The programs of CSI-Addons, and the manifests of its manager, are those of the released module.
const (
	addonsModule  = "hack/csiaddons"
	addonsPackage = "github.com/csi-addons/kubernetes-csi-addons"
)

// snapshotProducts are csi-provisioner and the programs of external-snapshotter. No node has them: its kernel has no
// device-mapper.
var snapshotProducts = []product{
	{name: "csi-provisioner", module: "hack/kube/programs", pkg: "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner", version: Version136},
	{name: "csi-snapshotter", module: snapshotModule, pkg: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter"},
	{name: "snapshot-controller", module: snapshotModule, pkg: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller"},
}

const snapshotModule = "hack/kube/snapshots"

// debianPackages are unpacked, not installed: containerd's package starts a service.
var debianPackages = []string{"containerd", "runc", "containernetworking-plugins", "busybox-static", "bash-static", "coreutils", "libc6"}

// Build makes what a cluster runs on: the programs, Debian's packages, the images. What the cache has from
// the same inputs is not made again. The daemon is always built, and its image.
func Build(ctx context.Context, root, version string) error {
	b := newBuilder(root)
	if err := b.buildKubernetes(ctx, version); err != nil {
		return err
	}
	if err := b.once("key", func() error {
		for _, p := range products {
			if err := b.build(ctx, p); err != nil {
				return err
			}
		}
		if err := b.unpackDebian(ctx); err != nil {
			return err
		}
		return errors.Join(b.copyAddons(ctx), b.writeImages())
	}, "hack/kube/programs", "hack/kube/tools", addonsModule+"/go.mod", "hack/kube/cluster/build.go", "hack/kube/cluster/image.go", "deploy/chart/drivebay/values.yaml"); err != nil {
		return err
	}
	if err := b.once("base.key", func() error { return b.makeBase(ctx) }, "hack/kube/cluster/build.go", "Dockerfile"); err != nil {
		return err
	}
	if err := b.run(ctx, root, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", b.file("bin/drivebay"), "./cmd/drivebay"); err != nil {
		return err
	}
	return b.writeDaemonImage()
}

// BuildPrograms makes the programs of Kubernetes only, which is all that an API server needs.
func BuildPrograms(ctx context.Context, root string) error {
	return newBuilder(root).buildKubernetes(ctx, Version136)
}

// BuildAddons makes the programs of CSI-Addons and copies their manifests.
func BuildAddons(ctx context.Context, root string) error {
	b := newBuilder(root)
	return b.once("addons.key", func() error {
		for _, p := range products {
			if p.module == addonsModule {
				if err := b.build(ctx, p); err != nil {
					return err
				}
			}
		}
		return b.copyAddons(ctx)
	}, addonsModule+"/go.mod", "hack/kube/cluster/build.go")
}

// BuildSnapshots makes the programs of snapshots and copies the CRDs.
func BuildSnapshots(ctx context.Context, root string) error {
	b := newBuilder(root)
	return b.once("snapshots.key", func() error {
		for _, p := range snapshotProducts {
			if err := b.build(ctx, p); err != nil {
				return err
			}
		}
		return b.copyFiles(ctx, snapshotModule, "github.com/kubernetes-csi/external-snapshotter/client/v8", "config/crd", "snapshots")
	}, snapshotModule, "hack/kube/programs/go.mod", "hack/kube/cluster/build.go")
}

func (b builder) buildKubernetes(ctx context.Context, version string) error {
	if err := os.MkdirAll(b.file("bin"), 0o755); err != nil {
		return err
	}
	p := kubernetes(version)
	return b.once(p.name+".key", func() error { return b.build(ctx, p) }, "hack/kube/programs/"+modfile(version), "hack/kube/programs/hyper")
}

// modfile is the file of the modules of a version of Kubernetes.
func modfile(version string) string {
	if version == Version136 {
		return "go.mod"
	}
	return version + ".mod"
}

func newBuilder(root string) builder {
	return builder{root: root, dir: filepath.Join(root, ".cache/kube")}
}

type builder struct{ root, dir string }

// file is the path of a file in the cache.
func (b builder) file(name string) string { return filepath.Join(b.dir, name) }

// once makes something unless the stamp says that it was made from the same inputs.
func (b builder) once(stamp string, produce func() error, inputs ...string) error {
	key, err := b.key(inputs)
	if err != nil {
		return err
	}
	stamp = b.file(stamp)
	if made, _ := os.ReadFile(stamp); string(made) == key {
		return nil
	}
	if err := os.RemoveAll(stamp); err != nil {
		return err
	}
	if err := produce(); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(key), 0o644)
}

// key is a hash of the inputs, which are files and folders, and of the version of Go.
func (b builder) key(inputs []string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	for _, input := range inputs {
		err := filepath.WalkDir(filepath.Join(b.root, input), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%s %x\n", path, sha256.Sum256(content))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x\n", sum.Sum(nil)), nil
}

// build builds a program. Programs are linked one after the other: two linkers of this size at once need 4 GiB.
func (b builder) build(ctx context.Context, p product) error {
	flags := "-s -w"
	command := []string{"build"}
	if p.test {
		command = []string{"test", "-c"}
	}
	if p.version != "" {
		command = append(command, "-modfile", modfile(p.version))
		for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			flags += fmt.Sprintf(" -X %s.gitVersion=%s", pkg, p.version)
		}
	}
	return b.run(ctx, filepath.Join(b.root, p.module), "go", append(command, "-buildvcs=false", "-trimpath", "-ldflags", flags, "-o", b.file("bin/"+p.name), p.pkg)...)
}

// copyAddons copies the manifests of CSI-Addons.
func (b builder) copyAddons(ctx context.Context) error {
	return b.copyFiles(ctx, addonsModule, addonsPackage, "deploy/controller", "csi-addons")
}

// copyFiles copies a folder of a module, which a module of this repository needs, into the cache.
func (b builder) copyFiles(ctx context.Context, of, module, folder, to string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = filepath.Join(b.root, of)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", module, err)
	}
	to = b.file(to)
	return errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(filepath.Join(strings.TrimSpace(string(out)), folder))))
}

func (b builder) unpackDebian(ctx context.Context) error {
	archives, unpacked := b.file("archives"), b.file("debian")
	if err := errors.Join(os.RemoveAll(archives), os.RemoveAll(unpacked), os.MkdirAll(archives, 0o755)); err != nil {
		return err
	}
	// The user _apt cannot write into a folder of root.
	if err := b.run(ctx, archives, "apt-get", append([]string{"download", "-qq", "-o", "APT::Sandbox::User=root"}, debianPackages...)...); err != nil {
		return fmt.Errorf("%w (does `apt-get update` help?)", err)
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil || len(files) != len(debianPackages) {
		return fmt.Errorf("apt-get download gave %d of %d packages: %w", len(files), len(debianPackages), err)
	}
	for _, f := range files {
		if err := b.run(ctx, b.dir, "dpkg-deb", "--extract", f, unpacked); err != nil {
			return err
		}
	}
	return nil
}

// makeBase makes the layer below the daemon: the packages that the Dockerfile installs and those that they depend on, unpacked.
// So a program that the daemon needs and the Dockerfile does not name is missing here too.
func (b builder) makeBase(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(b.root, "Dockerfile"))
	if err != nil {
		return err
	}
	_, list, _ := strings.Cut(strings.ReplaceAll(string(text), "\\\n", " "), "--no-install-recommends ")
	list, _, found := strings.Cut(list, "&&")
	if !found {
		return errors.New("list of packages: the Dockerfile installs none in the known form")
	}
	sources, err := image.AptSources(ctx)
	if err != nil {
		return err
	}
	args := []string{"--quiet", "--mode=root", "--variant=extract", "--include=" + strings.Join(strings.Fields(list), ","), `--aptopt=APT::Install-Recommends "false"`}
	for _, dir := range []string{"doc", "man", "info", "locale", "lintian"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+dir+"/*")
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, "", b.file("base.tar"), "-")...)
	cmd.Stdin = strings.NewReader(strings.Join(sources, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mmdebstrap: %w\n%s", err, out)
	}
	return nil
}

// run runs a command in a folder. Its output is shown only if it fails.
func (b builder) run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
