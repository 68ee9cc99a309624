package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// daemonImage is the image of drivebay, with the name and the tags of docs/kubernetes.md. The second tag is the same image: for an upgrade.
const (
	daemonImage = "registry.example/drivebay"
	daemonTag   = "v1.0.0"
	nextTag     = "v1.1.0"
)

// AddonsManager is the image of the manager of CSI-Addons.
const AddonsManager = "quay.io/csiaddons/k8s-controller:v0.14.0"

// ociImage is an image of a container: a name, the layers, and the program that it starts.
type ociImage struct {
	name       string
	layers     []string // files below the cache
	entrypoint []string
	user       string // "": root
}

// writeImages writes the archive of the images that do not change with the daemon. No registry is needed.
func (b builder) writeImages() error {
	if err := errors.Join(b.writeShell(), os.RemoveAll(b.file("layers")), os.MkdirAll(b.file("layers"), 0o755)); err != nil {
		return err
	}
	chart, err := b.chartImages()
	if err != nil {
		return err
	}
	images := []ociImage{
		{name: "drivebay.example/pause:1", layers: []string{"shell.tar"}, entrypoint: []string{"/bin/sleep", "2147483647"}},
		{name: "drivebay.example/busybox:1", layers: []string{"shell.tar"}},
	}
	// The images of Kubernetes' storage tests (test/utils/image/manifest.go of Kubernetes) have a shell; what is special in them is not used.
	for _, name := range []string{"busybox:1.37.0-1", "nginx:1.15-4", "glibc-dns-testing:2.0.0"} {
		images = append(images, ociImage{name: "registry.k8s.io/e2e-test-images/" + name, layers: []string{"shell.tar"}})
	}
	programs := []struct {
		name, program string
		args          []string
		below         []string
		user          string
	}{
		{name: "registry.k8s.io/e2e-test-images/agnhost:2.63.0", program: "agnhost", below: []string{"shell.tar"}},
		{name: chart["registrar"], program: "sidecar", args: []string{"registrar"}},
		{name: chart["livenessprobe"], program: "sidecar", args: []string{"livenessprobe"}},
		{name: chart["provisioner"], program: "csi-provisioner"},
		{name: chart["resizer"], program: "csi-resizer"},
		{name: chart["csiAddons"], program: "csi-addons-sidecar"},
		{name: AddonsManager, program: "csi-addons-manager", user: "65532"},
	}
	for _, p := range programs {
		layer := "layers/" + p.program + ".tar"
		if err := b.writeProgram(layer, p.program, "/"+p.program); err != nil {
			return err
		}
		images = append(images, ociImage{name: p.name, layers: append(p.below, layer), entrypoint: append([]string{"/" + p.program}, p.args...), user: p.user})
	}
	return b.writeArchive("images.tar", images)
}

// chartImages returns the names by which the chart asks for its images.
func (b builder) chartImages() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(b.root, "deploy/chart/drivebay/values.yaml"))
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): \{repository: (\S+), tag: (\S+), digest`).FindAllSubmatch(text, -1) {
		names[string(m[1])] = string(m[2]) + ":" + string(m[3])
	}
	return names, err
}

// writeDaemonImage writes the archive of the image of the daemon: the packages of the Dockerfile, and the program.
func (b builder) writeDaemonImage() error {
	if err := b.writeProgram("layers/drivebay.tar", "drivebay", "/usr/local/bin/drivebay"); err != nil {
		return err
	}
	var images []ociImage
	for _, tag := range []string{daemonTag, nextTag} {
		images = append(images, ociImage{name: daemonImage + ":" + tag, layers: []string{"base.tar", "layers/drivebay.tar"}, entrypoint: []string{"/usr/local/bin/drivebay"}})
	}
	return b.writeArchive("daemon.tar", images)
}

// writeArchive writes an archive of images in the format of docker save.
func (b builder) writeArchive(name string, images []ociImage) error {
	file, err := os.Create(b.file(name))
	if err != nil {
		return err
	}
	defer file.Close()
	w := tar.NewWriter(file)
	digests := map[string]string{}
	var manifest []any
	for _, i := range images {
		if i.name == "" {
			return fmt.Errorf("%s: an image without a name: deploy/chart/drivebay/values.yaml has another form", name)
		}
		var diffs, layers []string
		for _, layer := range i.layers {
			if digests[layer] == "" {
				content, err := os.ReadFile(b.file(layer))
				if err := errors.Join(err, addFile(w, layer, content, 0o644)); err != nil {
					return err
				}
				digests[layer] = fmt.Sprintf("sha256:%x", sha256.Sum256(content))
			}
			diffs, layers = append(diffs, digests[layer]), append(layers, layer)
		}
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
			"config": map[string]any{"Entrypoint": i.entrypoint, "User": i.user, "WorkingDir": "/", "Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
		})
		configName := fmt.Sprintf("%x-%d.json", sha256.Sum256(config), len(manifest))
		if err := errors.Join(err, addFile(w, configName, config, 0o644)); err != nil {
			return err
		}
		manifest = append(manifest, map[string]any{"Config": configName, "RepoTags": []string{i.name}, "Layers": layers})
	}
	text, err := json.Marshal(manifest)
	return errors.Join(err, addFile(w, "manifest.json", text, 0o644), w.Close())
}

// writeProgram writes a layer of one program.
func (b builder) writeProgram(layer, program, path string) error {
	content, err := os.ReadFile(b.file("bin/" + program))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(addFile(w, strings.TrimPrefix(path, "/"), content, 0o755), w.Close()); err != nil {
		return err
	}
	return os.WriteFile(b.file(layer), out.Bytes(), 0o644)
}

// writeShell writes the layer of busybox, with two programs in place of its own, because of what Kubernetes' tests use: the dd of
// coreutils, which knows oflag=nocache, and bash as the shell. That of busybox starts the dd of busybox, whatever the path has, and
// dash has no let.
func (b builder) writeShell() error {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	var errs []error
	for _, dir := range []string{"bin", "etc", "tmp", "usr", "usr/bin", "usr/sbin", "mnt", "root"} {
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		errs = append(errs, w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: mode}))
	}
	busybox := b.file("debian/bin/busybox")
	files := map[string]string{"bin/busybox": busybox, "bin/sh": b.file("debian/bin/bash-static"), "bin/dd": b.file("debian/bin/dd")}
	for _, library := range []string{"lib/*-linux-gnu/libc.so.6", "lib64/ld-linux-*.so.*", "lib/ld-linux-*.so.*"} { // the last is that of arm64
		found, err := filepath.Glob(b.file("debian/" + library))
		errs = append(errs, err)
		for _, path := range found {
			name, err := filepath.Rel(b.file("debian"), path)
			errs = append(errs, err)
			files[name] = path
		}
	}
	for name, path := range files {
		// The link of the loader names a path of the image.
		if target, err := os.Readlink(path); err == nil && filepath.IsAbs(target) {
			path = b.file("debian" + target)
		}
		content, err := os.ReadFile(path)
		errs = append(errs, err, addFile(w, name, content, 0o755))
	}
	applets, err := exec.Command(busybox, "--list").Output()
	errs = append(errs, err)
	for _, applet := range strings.Fields(string(applets)) {
		if !slices.Contains([]string{"busybox", "sh", "dd"}, applet) {
			errs = append(errs, w.WriteHeader(&tar.Header{Name: filepath.Join("bin", applet), Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}))
		}
	}
	if err := errors.Join(append(errs, w.Close())...); err != nil {
		return err
	}
	return os.WriteFile(b.file("shell.tar"), layer.Bytes(), 0o644)
}

func addFile(w *tar.Writer, name string, content []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
