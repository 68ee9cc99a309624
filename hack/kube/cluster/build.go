package cluster

import (
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
)

const kubernetesVersion = "v1.36.3"

// programs are the packages of the module hack/kube/programs.
var programs = []string{"hyper", "registrar"}

// debianPackages are unpacked, not installed: containerd's package starts a service.
var debianPackages = []string{"containerd", "runc", "containernetworking-plugins", "busybox-static"}

// Build makes what a cluster runs on: the programs, Debian's packages, the images. What the cache has from
// the same inputs is not made again. The daemon is always built.
func Build(ctx context.Context, root string) error {
	if err := BuildPrograms(ctx, root); err != nil {
		return err
	}
	b := newBuilder(root)
	if err := b.once("key", func() error {
		if err := b.unpackDebian(ctx); err != nil {
			return err
		}
		if err := writeImages(filepath.Join(b.dir, "images.tar"), filepath.Join(b.dir, "debian/bin/busybox")); err != nil {
			return fmt.Errorf("images: %w", err)
		}
		return nil
	}); err != nil {
		return err
	}
	return b.run(ctx, root, "go", "build", "-buildvcs=false", "-tags", "grpcnotrace", "-o", filepath.Join(b.dir, "bin/drivebay"), "./cmd/drivebay")
}

// BuildPrograms makes the programs of Kubernetes only, which is all that an API server needs.
func BuildPrograms(ctx context.Context, root string) error {
	b := newBuilder(root)
	if err := os.MkdirAll(filepath.Join(b.dir, "bin"), 0o755); err != nil {
		return err
	}
	return b.once("programs.key", func() error { return b.buildPrograms(ctx) })
}

func newBuilder(root string) builder {
	return builder{root: root, dir: filepath.Join(root, ".cache/kube")}
}

// once makes something unless the stamp says that it was made from the same inputs.
func (b builder) once(stamp string, make func() error) error {
	key, err := b.key()
	if err != nil {
		return err
	}
	stamp = filepath.Join(b.dir, stamp)
	if made, _ := os.ReadFile(stamp); string(made) == key {
		return nil
	}
	if err := os.RemoveAll(stamp); err != nil {
		return err
	}
	if err := make(); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(key), 0o644)
}

type builder struct{ root, dir string }

// key is a hash of all inputs: the sources of the module, those of this package, the version of Go.
func (b builder) key() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	for _, dir := range []string{"hack/kube/programs", "hack/kube/cluster"} {
		err := filepath.WalkDir(filepath.Join(b.root, dir), func(path string, e fs.DirEntry, err error) error {
			name := filepath.Base(path)
			if err != nil || e.IsDir() || dir == "hack/kube/cluster" && name != "build.go" && name != "image.go" {
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

// buildPrograms links one program after the other: two linkers of this size at once need 4 GiB.
func (b builder) buildPrograms(ctx context.Context) error {
	module := filepath.Join(b.root, "hack/kube/programs")
	flags := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %s.gitVersion=%s", pkg, kubernetesVersion)
	}
	for _, p := range programs {
		if err := b.run(ctx, module, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", flags, "-o", filepath.Join(b.dir, "bin", p), "./"+p); err != nil {
			return err
		}
	}
	return nil
}

func (b builder) unpackDebian(ctx context.Context) error {
	archives, unpacked := filepath.Join(b.dir, "archives"), filepath.Join(b.dir, "debian")
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

// run runs a command in a folder. Its output is shown only if it fails.
func (b builder) run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
