package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// makeBase makes the parts that come from Debian: vmlinux, root.img and
// boot-modules/, the modules that reach the root disk in the order to load them.
func makeBase(ctx context.Context, cache string, log io.Writer) (string, error) {
	sources, err := AptSources(ctx)
	if err != nil {
		return "", err
	}
	kernel, version, err := kernelPackage(ctx)
	if err != nil {
		return "", err
	}
	base := filepath.Join(cache, "base-"+Key(recipe, kernel, version, strings.Join(releases(sources), "\n"), strings.Join(packages, " "), strings.Join(moduleDirs, " "), strings.Join(bootModules, " ")))
	if _, err := os.Stat(base); err == nil {
		return base, nil
	}
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("making the lab's image takes root, once: run it as root with DRIVEBAY_LAB_CACHE=%[1]s and give that folder to yourself (chown -R %[2]d %[1]s); machines then start without", cache, os.Geteuid())
	}
	Prune(cache, "base-*", 14*24*time.Hour)
	b := &builder{ctx: ctx, work: base + ".tmp", log: log, began: time.Now()}
	if err := os.RemoveAll(b.work); err != nil {
		return "", err
	}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(b.work)
	if err := b.make(kernel, sources); err != nil {
		return "", fmt.Errorf("make the lab's image: %w", err)
	}
	return base, os.Rename(b.work, base)
}

type builder struct {
	ctx   context.Context
	work  string
	log   io.Writer
	began time.Time
}

func (b *builder) make(kernel string, sources []string) error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"kernel and root file system from Debian packages", func() error { return b.fetch(kernel, sources) }},
		{"modules", b.modules},
		{"root disk", b.disk},
	} {
		fmt.Fprintf(b.log, "lab: %s ...\n", step.name)
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	for _, tree := range []string{"root", "kernel"} {
		if err := os.RemoveAll(filepath.Join(b.work, tree)); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.log, "lab: image made in %.0f s\n", time.Since(b.began).Seconds())
	return nil
}

// fetch brings both at once: one waits for the network while the other unpacks.
func (b *builder) fetch(kernel string, sources []string) error {
	done := make(chan error, 1)
	go func() { done <- b.fetchKernel(kernel) }()
	err := b.bootstrap(sources)
	return errors.Join(<-done, err)
}

func (b *builder) fetchKernel(name string) error {
	tree := filepath.Join(b.work, "kernel")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	// apt fetches as another user where it may; here it may not write.
	if err := b.runIn(tree, "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name); err != nil {
		return err
	}
	debs, err := filepath.Glob(tree + "/*.deb")
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download %s left %d packages", name, len(debs))
	}
	if err := b.run("dpkg-deb", "-x", debs[0], tree); err != nil {
		return err
	}
	images, err := filepath.Glob(tree + "/boot/vmlinuz-*")
	if err != nil || len(images) != 1 {
		return fmt.Errorf("package %s has %d kernels", name, len(images))
	}
	return b.unpackKernel(images[0], filepath.Join(b.work, "vmlinux"))
}

func (b *builder) bootstrap(sources []string) error {
	drop := []string{}
	for _, dir := range []string{"doc", "man", "info", "locale", "lintian"} {
		drop = append(drop, "--dpkgopt=path-exclude=/usr/share/"+dir+"/*")
	}
	args := append([]string{"--quiet", "--mode=root", "--variant=essential", "--include=" + strings.Join(packages, ","),
		`--aptopt=APT::Install-Recommends "false"`}, drop...)
	args = append(args, "", filepath.Join(b.work, "root"), "-")
	cmd := exec.CommandContext(b.ctx, "mmdebstrap", args...)
	cmd.Stdin = strings.NewReader(strings.Join(sources, "\n") + "\n")
	return quiet(cmd)
}

// disk turns the tree into a file system, without mounting anything.
func (b *builder) disk() error {
	root := filepath.Join(b.work, "root")
	if err := os.WriteFile(root+"/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644); err != nil {
		return err
	}
	// hdparm's rule runs a long shell script for every disk that comes: a second each
	// on an emulated processor, and nothing there has a setting.
	if err := os.Remove(root + "/usr/lib/udev/rules.d/85-hdparm.rules"); err != nil {
		return err
	}
	if err := dropComments(root + "/etc/lvm/lvm.conf"); err != nil {
		return err
	}
	mke2fs, err := lookPath("mke2fs")
	if err != nil {
		return err
	}
	// No journal: nobody ever writes to it.
	return b.run(mke2fs, "-q", "-t", "ext4", "-O", "^has_journal", "-E", "lazy_itable_init=1", "-m", "0", "-b", "4096",
		"-d", root, filepath.Join(b.work, "root.img"), "1G")
}

// dropComments removes the lines of a configuration that are empty or comments. Debian's
// lvm.conf is 2,400 lines, nearly all comments, and every LVM command reads it: 0.1 s on
// an emulated processor.
func dropComments(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || line[0] == '#'
	})
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (b *builder) run(argv ...string) error { return b.runIn("", argv...) }

func (b *builder) runIn(dir string, argv ...string) error {
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	return quiet(cmd)
}

// quiet runs a command and shows what it said only when it fails.
func quiet(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		text := said.String()
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, text[max(0, len(text)-2000):])
	}
	return nil
}

// AptSources are the lines of this machine's Debian sources: the lab takes its
// packages from where the machine takes its own.
func AptSources(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(ORIGIN)\t$(SIGNED_BY)\t$(SITE)\t$(RELEASE)\t$(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		return nil, fmt.Errorf("ask apt for its sources: %w", err)
	}
	lines := debianSources(string(out))
	if len(lines) == 0 {
		return nil, errors.New("apt knows no Debian packages: the lab is built from Debian's, run apt-get update on a Debian machine")
	}
	return lines, nil
}

// debianSources makes sources.list(5) lines of the rows of apt-get indextargets.
func debianSources(table string) []string {
	var lines []string
	for row := range strings.Lines(table) {
		f := strings.Split(strings.TrimSpace(row), "\t")
		if len(f) != 5 || f[0] != "Debian" || strings.Contains(f[3], "backports") {
			continue
		}
		option := ""
		if strings.HasPrefix(f[1], "/") {
			option = "[signed-by=" + f[1] + "] "
		}
		if line := "deb " + option + f[2] + " " + f[3] + " " + f[4]; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// releases drops from the lines whom they are fetched from: any mirror will do.
func releases(sources []string) []string {
	var out []string
	for _, s := range sources {
		f := strings.Fields(s)
		out = append(out, strings.Join(f[len(f)-2:], " "))
	}
	slices.Sort(out)
	return out
}

// kernelPackage is the newest kernel of the release. The cloud kernel would be
// smaller but has neither AHCI nor enclosures.
func kernelPackage(ctx context.Context) (name, version string, err error) {
	out, err := exec.CommandContext(ctx, "apt-cache", "depends", "linux-image-amd64").Output()
	if err != nil {
		return "", "", fmt.Errorf("ask apt for the kernel: %w", err)
	}
	rest, ok := after(string(out), "Depends: linux-image")
	if !ok {
		return "", "", errors.New("apt knows no linux-image-amd64: run apt-get update")
	}
	name = "linux-image" + rest
	out, err = exec.CommandContext(ctx, "apt-cache", "show", "--no-all-versions", name).Output()
	if err != nil {
		return "", "", fmt.Errorf("ask apt for %s: %w", name, err)
	}
	if version, ok = after(string(out), "Version: "); !ok {
		return "", "", fmt.Errorf("apt does not say which version of %s it has", name)
	}
	return name, version, nil
}

// after is what follows a word in the first line that begins with it.
func after(text, word string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word); ok {
			return rest, true
		}
	}
	return "", false
}

// exists tells whether a file is there.
func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
