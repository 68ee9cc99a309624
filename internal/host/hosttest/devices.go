package hosttest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var devNum = regexp.MustCompile(`^\d+:\d+$`)

// hidden reports whether a device is a path behind an NVMe head, which has no device number.
func (c *checker) hidden(dir string) bool {
	return c.has(dir+"/hidden") && c.text(dir+"/hidden") == "1"
}

func blockDevices(c *checker) {
	for _, name := range c.blocks() {
		dir := "sys/block/" + name
		c.check(c.has(dir+"/size") && c.has(dir+"/stat") && c.has(dir+"/queue"), "%s lacks size, stat or queue", name)
		if size := c.number(dir + "/size"); size > 1<<54 {
			c.Errorf("%s has %d sectors", name, size)
		}
		if logical := c.number(dir + "/queue/logical_block_size"); logical < 512 || logical&(logical-1) != 0 {
			c.Errorf("%s has blocks of %d bytes", name, logical)
		}
		if c.hidden(dir) {
			c.check(!c.has(dir+"/dev"), "%s is hidden and has a device number", name)
			continue
		}
		dev := c.text(dir + "/dev")
		c.check(devNum.MatchString(dev), "%s has the device number %q", name, dev)
		if c.has("sys/dev/block/" + dev) {
			there, _ := c.Resolve("sys/dev/block/" + dev)
			here, _ := c.Resolve(dir)
			c.check(there == here, "device %s is %s, and %s is %s", dev, there, name, here)
		}
	}
}

// ueventFiles checks that MAJOR, MINOR and DEVNAME agree with the other files.
func ueventFiles(c *checker) {
	for _, name := range c.blocks() {
		dir := "sys/block/" + name
		env := map[string]string{}
		for line := range strings.Lines(c.text(dir + "/uevent")) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[k] = v
		}
		c.check(env["DEVTYPE"] == "disk", "%s: DEVTYPE %q", name, env["DEVTYPE"])
		if !c.hidden(dir) {
			c.check(env["MAJOR"]+":"+env["MINOR"] == c.text(dir+"/dev"), "%s: device number %s:%s", name, env["MAJOR"], env["MINOR"])
			c.check(strings.ReplaceAll(env["DEVNAME"], "/", "!") == name, "%s: DEVNAME %q", name, env["DEVNAME"])
		}
	}
}

func stats(c *checker) {
	for _, name := range c.blocks() {
		for file, least := range map[string]int{"stat": 11, "inflight": 2} {
			fields := strings.Fields(c.text("sys/block/" + name + "/" + file))
			c.check(len(fields) >= least, "%s/%s has %d fields: %q", name, file, len(fields), fields)
			for _, f := range fields {
				if _, err := strconv.ParseUint(f, 10, 64); err != nil {
					c.Errorf("%s/%s: %v", name, file, err)
				}
			}
		}
	}
}

// detachedLoop reports whether a device is a loop device without a backing file. The kernel sets its size to 0, and keeps
// partitions of it that were added without LO_FLAGS_PARTSCAN, such as by partx (drivers/block/loop.c, __loop_clr_fd).
func (c *checker) detachedLoop(name string) bool {
	dir := "sys/block/" + name
	return strings.HasPrefix(name, "loop") && c.number(dir+"/size") == 0 && !c.has(dir+"/loop/backing_file")
}

// partitions checks that partitions lie within their drive and that sys/class/block lists them.
func partitions(c *checker) {
	for _, name := range c.blocks() {
		dir := "sys/block/" + name
		entries, err := c.ReadDir(dir)
		if err != nil {
			c.Errorf("%s: %v", dir, err)
		}
		whole := c.number(dir + "/size")
		for _, p := range entries {
			at := dir + "/" + p
			if !strings.HasPrefix(p, name) || !c.has(at+"/partition") {
				continue
			}
			end := c.number(at+"/start") + c.number(at+"/size")
			if !c.detachedLoop(name) {
				c.check(end <= whole, "%s ends at %d of %d", p, end, whole)
			}
			c.check(devNum.MatchString(c.text(at+"/dev")), "%s has the device number %q", p, c.text(at+"/dev"))
			full, _ := c.Resolve(at)
			listed, err := c.Resolve("sys/class/block/" + p)
			c.check(err == nil && listed == full, "sys/class/block/%s is %s, %v, not %s", p, listed, err, full)
		}
	}
}

// udevDatabase checks that entries of block devices are lines of a letter and a colon.
func udevDatabase(c *checker) {
	for _, name := range c.blocks() {
		dir := "sys/block/" + name
		if c.hidden(dir) {
			continue
		}
		b, err := c.ReadFile("run/udev/data/b" + c.text(dir+"/dev"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if len(line) < 3 || line[1] != ':' {
				c.Errorf("udev entry of %s: %q", name, line)
			}
		}
		c.check(len(b) > 0, "the udev entry of %s is empty", name)
	}
}

// scsiDevices checks the files that describe a drive, and the counters.
func scsiDevices(c *checker) {
	addresses, _ := c.ReadDir("sys/class/scsi_device")
	for _, a := range addresses {
		dev := "sys/class/scsi_device/" + a + "/device"
		if !c.has(dev) { // trimmed copies lack the folder in between
			dev = "sys/class/scsi_device/" + a
		}
		if !c.has(dev + "/state") {
			continue
		}
		c.check(c.text(dev+"/state") != "" && c.has(dev+"/vendor") && c.has(dev+"/model") && c.has(dev+"/type"), "%s lacks state, vendor, model or type", a)
	}
	for _, name := range c.blocks() {
		dev := "sys/block/" + name + "/device"
		if !strings.HasPrefix(name, "sd") || !c.has(dev) {
			continue
		}
		at, _ := c.Resolve(dev)
		c.check(regexp.MustCompile(`/\d+:\d+:\d+:\d+$`).MatchString(at), "the device of %s is %s", name, at)
		for file, width := range map[string]int{"vendor": 8, "model": 16, "rev": 4} {
			b, err := c.ReadFile(dev + "/" + file)
			c.check(err == nil && len(strings.TrimSuffix(string(b), "\n")) == width, "%s: %s is %q, %v; want %d characters", name, file, b, err, width)
		}
		for _, file := range []string{"iodone_cnt", "ioerr_cnt"} {
			var n uint64
			_, err := fmt.Sscanf(c.text(dev+"/"+file), "0x%x", &n)
			c.check(err == nil, "%s: %s: %v", name, file, err)
		}
		if b, err := c.ReadFile(dev + "/vpd_pg80"); err == nil {
			c.check(len(b) >= 4 && b[1] == 0x80 && int(b[2])<<8|int(b[3]) <= len(b)-4, "%s: vpd_pg80 is % x", name, b)
		}
	}
}

func nvmeControllers(c *checker) {
	names, _ := c.ReadDir("sys/class/nvme")
	for _, n := range names {
		dir := "sys/class/nvme/" + n
		for _, file := range []string{"serial", "model", "firmware_rev", "state", "address", "transport"} {
			b, err := c.ReadFile(dir + "/" + file)
			c.check(err == nil && len(b) > 0, "%s: %s: %q, %v", n, file, b, err)
		}
	}
	for _, name := range c.blocks() {
		if strings.HasPrefix(name, "nvme") && !c.hidden("sys/block/"+name) {
			c.check(c.text("sys/block/"+name+"/wwid") != "", "%s has no wwid", name)
			c.check(c.has("sys/block/"+name+"/device"), "%s has no device", name)
		}
	}
}

// bays checks that the device of a slot is a drive, and that every slot has a status or an address.
func bays(c *checker) {
	enclosures, _ := c.ReadDir("sys/class/enclosure")
	for _, e := range enclosures {
		dir := "sys/class/enclosure/" + e
		slots, _ := c.ReadDir(dir)
		for _, s := range slots {
			kind, err := c.ReadFile(dir + "/" + s + "/type")
			if err != nil || !strings.Contains(string(kind), "device") { // "device" itself is a link to the processor, whose type is a number
				continue
			}
			c.check(c.text(dir+"/"+s+"/status") != "", "%s %s has no status", e, s)
			if c.has(dir + "/" + s + "/device") {
				c.check(c.has(dir+"/"+s+"/device/block"), "the device of %s %s is not a disk", e, s)
			}
		}
	}
	slots, _ := c.ReadDir("sys/bus/pci/slots")
	for _, s := range slots {
		c.check(c.text("sys/bus/pci/slots/"+s+"/address") != "", "PCI slot %s has no address", s)
	}
}
