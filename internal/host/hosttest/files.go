package hosttest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

func describe(c *checker) {
	d := c.Describe()
	c.check(d.Name != "", "the machine has no name")
	c.check(slices.Contains([]string{"real", "recorded", "simulated"}, d.Kind), "kind %q", d.Kind)
}

const nothing = "sys/block/drivebay-conformance-nothing"

// missing checks that every read of a missing name gives fs.ErrNotExist.
func missing(c *checker) {
	for _, name := range []string{nothing, nothing + "/size", "sys/class/block/" + path.Base(nothing) + "/device/model"} {
		_, readErr := c.ReadFile(name)
		_, dirErr := c.ReadDir(name)
		_, resolveErr := c.Resolve(name)
		_, linkErr := c.Readlink(name)
		for op, err := range map[string]error{"ReadFile": readErr, "ReadDir": dirErr, "Resolve": resolveErr, "Readlink": linkErr} {
			c.check(errors.Is(err, fs.ErrNotExist), "%s(%s): %v, want not exist", op, name, err)
		}
	}
}

// folders are the folders that sorted lists.
var folders = []string{"sys", "sys/block", "sys/class", "sys/class/block", "sys/class/nvme", "sys/class/scsi_device", "sys/class/enclosure", "sys/bus/pci/slots", "sys/dev/block", "run/udev/data", "proc/self"}

func sorted(c *checker) {
	for _, dir := range folders {
		names, err := c.ReadDir(dir)
		if err != nil {
			continue
		}
		c.check(slices.IsSorted(names), "%s is not sorted: %v", dir, names)
		for _, n := range names {
			if n == "" || strings.Contains(n, "/") {
				c.Errorf("%s lists %q", dir, n)
			}
		}
	}
}

// blocks returns the entries of sys/block.
func (c *checker) blocks() []string {
	names, err := c.ReadDir("sys/block")
	if err != nil {
		c.Logf("no sys/block: %v", err)
	}
	return names
}

// canonical checks that Resolve gives a name without links, dots or a leading slash, below which the
// same files are.
func canonical(c *checker) {
	for _, name := range c.blocks() {
		at, err := c.Resolve("sys/block/" + name)
		if err != nil {
			c.check(false, "resolve %s: %v", name, err)
			continue
		}
		c.check(path.Clean(at) == at && !strings.HasPrefix(at, "/") && !strings.HasPrefix(at, ".."), "%s resolves to %q", name, at)
		again, err := c.Resolve(at)
		c.check(err == nil && again == at, "resolving %s twice gives %q, %v", at, again, err)
		c.check(path.Base(at) == name, "%s resolves to %s", name, at)
		for _, file := range []string{"/size", "/../" + name + "/size"} {
			one, err1 := c.ReadFile("sys/block/" + name + "/size")
			two, err2 := c.ReadFile(at + file)
			c.check(err1 == nil && err2 == nil && string(one) == string(two), "%s%s: %q %v, by its canonical name %q %v", name, file, one, err1, two, err2)
		}
	}
	for _, link := range []string{"sys/class/block", "sys/class/nvme", "sys/class/scsi_device"} {
		names, _ := c.ReadDir(link)
		for _, n := range names {
			at, err := c.Resolve(link + "/" + n)
			if err != nil && c.Describe().Kind == "recorded" {
				continue // copies are often trimmed: the link exists and its target does not
			}
			c.check(err == nil && strings.HasPrefix(at, "sys/devices/"), "%s/%s resolves to %q, %v", link, n, at, err)
		}
	}
}

// inside checks that no name and no link leads out of the root.
func inside(c *checker) {
	for up := range 6 {
		name := "sys/" + strings.Repeat("../", up) + "sys/block"
		at, err := c.Resolve(name)
		if up > 1 || err == nil { // too many ".." end at the root
			c.check(err == nil && at == "sys/block", "%s resolves to %q, %v", name, at, err)
		}
	}
	a, errA := c.ReadDir("sys/../../../..")
	b, errB := c.ReadDir("sys/..")
	c.check(errA == nil && errB == nil && slices.Equal(a, b), "above the root is something else than the root: %v %v, %v %v", a, errA, b, errB)
}

func writeMissing(c *checker) {
	err := c.WriteFile(nothing+"/locate", []byte("1"))
	c.check(err != nil, "writing %s/locate worked", nothing)
	_, err = c.Resolve(nothing)
	c.check(errors.Is(err, fs.ErrNotExist), "writing made %s: %v", nothing, err)
	if d := c.Describe(); d.Kind != "recorded" {
		err = c.WriteFile("sys/class/block", []byte("1"))
		c.check(err != nil, "writing to a folder worked")
	}
}

// text returns a file as one trimmed line; the file must exist.
func (c *checker) text(name string) string {
	b, err := c.ReadFile(name)
	if err != nil {
		c.Errorf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(b))
}

// has reports whether a file of that name exists.
func (c *checker) has(name string) bool {
	_, err := c.Resolve(name)
	return err == nil
}

// number returns the decimal number that a file holds.
func (c *checker) number(name string) (n uint64) {
	if _, err := fmt.Sscan(c.text(name), &n); err != nil {
		c.Errorf("%s: %v", name, err)
	}
	return n
}
