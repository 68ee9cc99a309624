package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// recording is a tree in memory: names below the root, without a leading slash.
type recording struct {
	host   string
	files  map[string][]byte
	links  map[string]string
	dirs   map[string]bool // targets of links, even those without any recorded file
	drives int
	asleep int // drives that sleep
}

// classes are the folders whose links lead to everything that describes a drive.
var classes = []string{
	"sys/block", "sys/class/block", "sys/class/nvme", "sys/class/nvme-subsystem", "sys/class/scsi_device",
	"sys/class/scsi_host", "sys/class/enclosure", "sys/class/sas_device", "sys/class/sas_end_device", "sys/dev/block",
	"sys/class/leds",
}

// plain are folders without links that are copied as they are.
var plain = []string{"sys/bus/pci/slots", "sys/fs/ext4", "sys/fs/btrfs"}

const (
	deep    = 4         // levels of a device's folder that are copied
	maxAttr = 256 << 10 // no attribute to record is longer
)

// skipped are attributes of a device that do not describe the drive, or disclose too
// much: PCI configuration space and vital product data hold serial numbers in binary.
var skipped = map[string]bool{
	"power": true, "trace": true, "mq": true, "msi_irqs": true, "driver": true, "firmware_node": true,
	"config": true, "vpd": true, "rom": true, "resource": true, "modalias": true,
}

// unused reports whether a block device is an empty loop or memory device; the kernel
// makes dozens of them.
func unused(m host.Machine, dir string) bool {
	size, _ := m.ReadFile(dir + "/size")
	base := strings.TrimLeft(path.Base(dir), "z")
	return (strings.HasPrefix(base, "loop") || strings.HasPrefix(base, "ram")) && strings.TrimSpace(string(size)) == "0"
}

func collect(ctx context.Context, m host.Machine, progress io.Writer) (*recording, error) {
	r := &recording{host: m.Describe().Name, files: map[string][]byte{}, links: map[string]string{}, dirs: map[string]bool{}}
	for _, dir := range classes {
		names, _ := m.ReadDir(dir)
		for _, name := range names {
			if full, err := m.Resolve(dir + "/" + name); err == nil && !unused(m, full) {
				r.follow(m, dir+"/"+name)
			}
		}
	}
	for _, dir := range plain {
		r.copy(m, dir, deep)
	}
	r.addresses(m)
	entries, _ := m.ReadDir("run/udev/data")
	for _, e := range entries {
		if strings.HasPrefix(e, "b") {
			r.file(m, "run/udev/data/"+e)
		}
	}
	for _, name := range []string{"proc/1/mountinfo", "proc/self/mountinfo", "proc/swaps", "proc/mdstat"} {
		r.file(m, name)
	}
	if len(r.links) == 0 && len(r.files) == 0 {
		return nil, errors.New("nothing could be read: is there a sys/ below the root?")
	}
	r.askDrives(ctx, m, progress)
	if r.asleep == 0 { // lvm reads every drive that it finds
		r.report(ctx, m, "lvm", "fullreport", "--reportformat", "json", "--units", "b", "--nosuffix")
	}
	release, _ := m.ReadFile("proc/sys/kernel/osrelease")
	manifest, err := json.MarshalIndent(host.Manifest{
		Format: host.ManifestFormat, Host: r.host, At: m.Now().UTC().Truncate(time.Second), Kernel: strings.TrimSpace(string(release)),
	}, "", "  ")
	r.files["manifest.json"] = append(manifest, '\n')
	return r, err
}

// follow records a link and the folder that it leads to.
func (r *recording) follow(m host.Machine, name string) {
	if target, err := m.Readlink(name); err == nil {
		r.link(m, name, target)
	}
	full, err := m.Resolve(name)
	if err != nil {
		return
	}
	r.copy(m, full, deep)
	if device, err := m.Resolve(full + "/device"); err == nil {
		r.copy(m, device, 1)
	}
}

// addresses records the links to the PCI devices that lead to a drive: they identify
// slots.
func (r *recording) addresses(m host.Machine) {
	names, _ := m.ReadDir("sys/bus/pci/devices")
	for _, name := range names {
		link := "sys/bus/pci/devices/" + name
		target, err := m.Readlink(link)
		full, err2 := m.Resolve(link)
		if err != nil || err2 != nil {
			continue
		}
		for file := range r.files {
			if strings.HasPrefix(file, full+"/") {
				r.links[link] = target
				break
			}
		}
	}
}

// link records a link, and the folder that it leads to, so that it resolves.
func (r *recording) link(m host.Machine, name, target string) {
	r.links[name] = target
	if full, err := m.Resolve(name); err == nil {
		if _, err := m.ReadDir(full); err == nil {
			r.dirs[full] = true
		}
	}
}

// copy records the attributes and links of a folder, and its subfolders down to depth.
func (r *recording) copy(m host.Machine, dir string, depth int) {
	names, err := m.ReadDir(dir)
	if err != nil || depth < 0 {
		return
	}
	for _, name := range names {
		full := dir + "/" + name
		if skipped[name] || r.links[full] != "" || r.files[full] != nil {
			continue
		}
		if target, err := m.Readlink(full); err == nil {
			r.link(m, full, target)
			continue
		}
		if _, err := m.ReadDir(full); err == nil {
			r.copy(m, full, depth-1)
			continue
		}
		r.file(m, full)
	}
}

func (r *recording) file(m host.Machine, name string) {
	b, err := m.ReadFile(name)
	if err == nil && len(b) <= maxAttr {
		r.files[name] = b
	}
}

// report records what a program prints, if it is installed.
func (r *recording) report(ctx context.Context, m host.Machine, argv ...string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if out, err := m.Run(ctx, argv...); err == nil {
		r.files["commands/"+strings.Join(argv, " ")+".txt"] = out
	}
}

// pages are all pages to read, by the command family of a device node.
var pages = map[host.Family][]host.Page{
	host.FamilyATA: {host.ATAPowerMode, host.ATAIdentify, host.ATASmartData, host.ATASmartThresholds, host.ATASmartStatus, host.ATALogDirectory,
		host.ATASummaryErrorLog, host.ATAExtErrorLog, host.ATASelfTestLog, host.ATAExtSelfTestLog, host.ATASelectiveLog, host.ATADevStats},
	host.FamilyNVMe: {host.NVMeIdentifyController, host.NVMeIdentifyNamespace, host.NVMeSmartLog, host.NVMeErrorLog, host.NVMeSelfTestLog},
	host.FamilySCSI: {host.SCSITestUnitReady, host.SCSIInquiry, host.SCSIVPDSupported, host.SCSIVPDSerial, host.SCSIVPDDeviceID, host.SCSIVPDATA,
		host.SCSIVPDBlockChar, host.SCSICapacity, host.SCSILogSupported, host.SCSILogWrite, host.SCSILogRead, host.SCSILogVerify, host.SCSILogNonMedium,
		host.SCSILogTemp, host.SCSILogStartStop, host.SCSILogSelfTest, host.SCSILogSSD, host.SCSILogBackground, host.SCSIPending, host.SCSILogIE, host.SCSIGrownDefects},
}

func families(r *recording, name string) []host.Family {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return []host.Family{host.FamilyNVMe}
	case strings.HasPrefix(name, "sd"):
		device := path.Dir(path.Dir(r.resolved("sys/block/" + name)))
		if strings.HasPrefix(string(r.files[device+"/vendor"]), "ATA ") {
			return []host.Family{host.FamilyATA, host.FamilySCSI}
		}
		return []host.Family{host.FamilySCSI}
	}
	return nil
}

// resolved returns the target of a class link, below the root.
func (r *recording) resolved(link string) string {
	return path.Join(path.Dir(link), r.links[link])
}

// askDrives asks every drive for every page. A drive that sleeps is left asleep.
func (r *recording) askDrives(ctx context.Context, m host.Machine, progress io.Writer) {
	names, _ := m.ReadDir("sys/block")
	for _, name := range names {
		var questions []host.Page
		for _, f := range families(r, name) {
			questions = append(questions, pages[f]...)
		}
		if len(questions) > 0 {
			fmt.Fprintln(progress, "asking", name)
			r.askDrive(ctx, m, name, questions)
			r.drives++
		}
	}
}

func (r *recording) askDrive(ctx context.Context, m host.Machine, name string, questions []host.Page) {
	dir := "pages/" + name + "/"
	h, err := m.OpenDrive(ctx, "/dev/"+name)
	if err != nil {
		for _, p := range questions {
			r.files[dir+string(p)+".err"] = []byte(host.RefusalName(err) + "\n")
		}
		return
	}
	defer h.Close()
	asleep := false
	for _, p := range questions {
		if asleep {
			r.files[dir+string(p)+".err"] = []byte(host.RefusalName(host.ErrStandby) + "\n")
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		b, err := h.Page(ctx, p)
		cancel()
		if err != nil {
			r.files[dir+string(p)+".err"] = []byte(host.RefusalName(err) + "\n")
		} else {
			r.files[dir+string(p)+".bin"] = b
		}
		// 00h and 01h are standby (ACS-4 7.4.4): the next question would spin it up.
		asleep = errors.Is(err, host.ErrStandby) || (p == host.ATAPowerMode && err == nil && b[0] <= 1)
	}
	if asleep {
		r.asleep++
	}
}

// write writes the recording to a new folder, which must not exist yet.
func (r *recording) write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name := range r.dirs {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	for name, b := range r.files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, b, 0o644); err != nil {
			return err
		}
	}
	for name, target := range r.links {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(target, full); err != nil {
			return err
		}
	}
	return nil
}
