package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

func openMissing(c *checker) {
	d, err := c.OpenDrive(c.ctx, "/dev/drivebay-conformance-nothing")
	if err == nil {
		d.Close()
	}
	c.check(errors.Is(err, host.ErrGone) || errors.Is(err, fs.ErrNotExist), "opening no device: %v", err)
}

// foreign holds, by prefix of the kernel name, a page that such a drive cannot have.
var foreign = map[string]host.Page{"nvme": host.ATAIdentify, "sd": host.NVMeSmartLog, "vd": host.ATASmartData}

// foreignPages checks that a drive refuses the pages of another family and returns no data.
func foreignPages(c *checker) {
	for _, name := range c.blocks() {
		for prefix, page := range foreign {
			if !strings.HasPrefix(name, prefix) || c.hidden("sys/block/"+name) {
				continue
			}
			d, err := c.OpenDrive(c.ctx, "/dev/"+name)
			if err != nil {
				c.Logf("%s cannot be opened here: %v", name, err)
				continue
			}
			b, err := d.Page(c.ctx, page)
			c.check(err != nil && len(b) == 0, "%s answered %s with %d bytes, %v", name, page, len(b), err)
			b, err = d.Page(c.ctx, "no-such-page")
			c.check(err != nil && len(b) == 0, "%s answered a page that does not exist with %d bytes, %v", name, len(b), err)
			if err := d.Close(); err != nil {
				c.Errorf("close %s: %v", name, err)
			}
		}
	}
}

func mounts(c *checker) {
	list, err := c.Mounts(c.ctx)
	if err != nil {
		c.Fatal(err)
	}
	root := false
	for _, m := range list {
		root = root || m.Target == "/"
		c.check(devNum.MatchString(m.DevNum), "mount %s has the device number %q", m.Target, m.DevNum)
		if m.FS == "" || !strings.HasPrefix(m.Target, "/") {
			c.Errorf("mount %+v lacks something", m)
		}
	}
	c.check(root, "no root among %d mounts", len(list))
}

// ends checks that a channel closes after its context has ended.
func ends[T any](c *checker, what string, listen func(context.Context) (<-chan T, error)) {
	ctx, cancel := context.WithCancel(c.ctx)
	ch, err := listen(ctx)
	if err != nil {
		cancel()
		c.Logf("no %s here: %v", what, err)
		return
	}
	cancel()
	late := time.After(patience)
	for {
		select {
		case _, open := <-ch:
			if !open {
				c.check(true, "")
				return
			}
		case <-late:
			c.check(false, "the channel of %s stays open after its context has ended", what)
			return
		}
	}
}

func uevents(c *checker)   { ends(c, "uevents", c.Uevents) }
func kernelLog(c *checker) { ends(c, "kernel log", c.KernelLog) }

func clock(c *checker) {
	a := c.Now()
	select {
	case <-c.After(2 * time.Millisecond):
	case <-time.After(patience):
		c.check(false, "After(2ms) does not come")
	}
	b := c.Now()
	c.check(!a.IsZero() && !b.Before(a), "the clock went from %v to %v", a, b)
	if c.Describe().Kind != "recorded" { // a recording's time stands still
		c.check(b.After(a), "the clock stands at %v", a)
	}
}

func run(c *checker) {
	const program = "drivebay-conformance-no-such-program"
	_, err := c.Machine.Run(c.ctx, program, "--help")
	c.check(err != nil && strings.Contains(err.Error(), program), "a program that does not exist: %v", err)

	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	began := time.Now()
	_, err = c.Machine.Run(ctx, "sleep", "60")
	c.check(err != nil, "a program ran although its context had ended")
	c.check(time.Since(began) < patience, "a program ran on for %v after its context had ended", time.Since(began))
}
