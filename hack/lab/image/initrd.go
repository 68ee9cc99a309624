package image

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeInitrd writes an initial file system: the program as /init and the
// modules that it loads, as an archive in the "newc" format
// (Documentation/driver-api/early-userspace/buffer-format.rst).
func writeInitrd(w io.Writer, program []byte, moduleDir string) error {
	modules, err := filepath.Glob(moduleDir + "/*.ko")
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		return fmt.Errorf("no modules in %s", moduleDir)
	}
	a := &archive{w: w}
	for _, dir := range []string{"dev", "proc", "sys", "modules"} {
		a.add(dir, 0o40755, nil)
	}
	// The kernel opens its console before the first program runs.
	a.device("dev/console", 0o20600, 5, 1)
	a.add("init", 0o100755, program)
	for _, m := range modules {
		content, err := os.ReadFile(m)
		if err != nil {
			return err
		}
		a.add("modules/"+filepath.Base(m), 0o100644, content)
	}
	a.add("TRAILER!!!", 0, nil)
	return a.err
}

type archive struct {
	w     io.Writer
	inode int
	err   error
}

func (a *archive) add(name string, mode int, content []byte) { a.entry(name, mode, 0, 0, content) }

func (a *archive) device(name string, mode, major, minor int) { a.entry(name, mode, major, minor, nil) }

func (a *archive) entry(name string, mode, major, minor int, content []byte) {
	a.inode++
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name)+1, 0)
	a.write([]byte(head + name + "\x00"))
	a.pad(len(head) + len(name) + 1)
	a.write(content)
	a.pad(len(content))
}

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
	}
}

// pad fills up to a multiple of four.
func (a *archive) pad(n int) { a.write(make([]byte, -n&3)) }
