// Package lab is the hardware lab as tests and programs use it: machines that
// start in a second, run our binaries and have their hardware broken.
package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/drivebay/drivebay/hack/lab/image"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

const module = "github.com/drivebay/drivebay"

// Setup makes all that a machine needs, or finds it in the cache.
func Setup(ctx context.Context, log io.Writer) (machine.Options, error) {
	cache, err := image.Cache()
	if err != nil {
		return machine.Options{}, err
	}
	guest, err := Build(ctx, cache, "./hack/lab/guest")
	if err != nil {
		return machine.Options{}, err
	}
	img, err := image.Make(ctx, cache, guest, log)
	return machine.Options{Image: img, Cache: cache, Log: log}, err
}

// Root is the folder of the checkout.
var Root = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the source tree: %w", err)
	}
	return string(out[:len(out)-1]), nil
})

// Build compiles one of our programs for a guest, static and the same each time
// for the same source, and says where it lies. Processes that build the same at
// once do not disturb each other.
func Build(ctx context.Context, cache, pkg string, flags ...string) (string, error) {
	return compile(ctx, cache, "build", pkg, flags)
}

func compile(ctx context.Context, cache, verb, pkg string, flags []string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	image.Prune(dir, "*", 3*24*time.Hour)
	tmp, err := os.MkdirTemp(dir, "tmp-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	args := []string{verb, "-o", filepath.Join(tmp, "out"), "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}
	if verb == "test" {
		args = append(args, "-c")
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, flags...), pkg)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s %s: %w\n%s", verb, pkg, err, out)
	}
	return keep(filepath.Join(tmp, "out"), filepath.Join(dir, filepath.Base(pkg)))
}

// keep names a file by its content, so that a new build never changes under a
// machine that runs the old one.
func keep(file, name string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	name += "-" + image.Key(string(content))
	return name, os.Rename(file, name)
}
