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
	"runtime"
	"strings"
)

// Pods run these images. One layer with busybox is the content of both: no registry is needed.
var imageEntrypoints = map[string][]string{
	"drivebay.example/pause:1":   {"/bin/sleep", "2147483647"},
	"drivebay.example/busybox:1": nil,
}

// writeImages writes an archive of all images in the format of docker save.
func writeImages(file, busybox string) error {
	layer, err := writeLayer(busybox)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	var manifest []any
	errs := []error{addFile(w, "layer.tar", layer, 0o644)}
	for name, entrypoint := range imageEntrypoints {
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
			"config": map[string]any{"Entrypoint": entrypoint, "Env": []string{"PATH=/bin"}, "WorkingDir": "/"},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
		})
		configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
		errs = append(errs, err, addFile(w, configName, config, 0o644))
		manifest = append(manifest, map[string]any{"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}})
	}
	text, err := json.Marshal(manifest)
	if err := errors.Join(append(errs, err, addFile(w, "manifest.json", text, 0o644), w.Close())...); err != nil {
		return err
	}
	return os.WriteFile(file, archive.Bytes(), 0o644)
}

// writeLayer returns the filesystem of the images.
func writeLayer(busybox string) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	var errs []error
	for _, dir := range []string{"bin", "etc", "tmp"} {
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		errs = append(errs, w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: mode}))
	}
	program, err := os.ReadFile(busybox)
	errs = append(errs, err, addFile(w, "bin/busybox", program, 0o755))
	applets, err := exec.Command(busybox, "--list").Output()
	errs = append(errs, err)
	for _, applet := range strings.Fields(string(applets)) {
		if applet != "busybox" {
			errs = append(errs, w.WriteHeader(&tar.Header{Name: filepath.Join("bin", applet), Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}))
		}
	}
	return layer.Bytes(), errors.Join(append(errs, w.Close())...)
}

func addFile(w *tar.Writer, name string, content []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
