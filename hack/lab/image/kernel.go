package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// unpackKernel takes the ELF file out of a bzImage: unpacking it inside the
// emulated machine takes seconds at every boot. The fields are those of the
// Linux/x86 boot protocol (Documentation/arch/x86/boot.rst): setup_sects at
// 1F1h, payload_offset at 248h, payload_length at 24Ch.
func (b *builder) unpackKernel(bzImage, elf string) error {
	image, err := os.ReadFile(bzImage)
	if err != nil {
		return err
	}
	payload, err := kernelPayload(image)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(bzImage), err)
	}
	tool := ""
	for _, format := range []struct {
		magic, tool string
		size        int // of the unpacked length at the end (the kernel's scripts/Makefile.lib, size_append)
	}{{"\xfd7zXZ\x00", "xz", 4}, {"\x1f\x8b", "gzip", 0}, {"\x28\xb5\x2f\xfd", "zstd", 4}} {
		if strings.HasPrefix(string(payload), format.magic) {
			tool, payload = format.tool, payload[:len(payload)-format.size]
		}
	}
	if tool == "" {
		return fmt.Errorf("%s is packed in a way that the lab does not know: it begins with % x", filepath.Base(bzImage), payload[:6])
	}
	out, err := os.Create(elf)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(b.ctx, tool, "-dc")
	cmd.Stdin, cmd.Stdout = bytes.NewReader(payload), out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(bzImage), err)
	}
	return out.Close()
}

func kernelPayload(image []byte) ([]byte, error) {
	if len(image) < 0x260 || string(image[0x202:0x206]) != "HdrS" {
		return nil, errors.New("no bzImage")
	}
	sectors := int(image[0x1F1])
	if sectors == 0 {
		sectors = 4
	}
	start := (sectors+1)*512 + int(binary.LittleEndian.Uint32(image[0x248:]))
	end := start + int(binary.LittleEndian.Uint32(image[0x24C:]))
	if start < 0 || end > len(image) || end-start < 6 {
		return nil, errors.New("payload outside of the file")
	}
	return image[start:end], nil
}

// moduleDirs are the parts of the kernel's module tree that a storage machine
// has use for; the rest (sound, graphics, wireless) is two thirds of its size.
var moduleDirs = strings.Fields(`
	arch block crypto lib mm fs net/9p net/core net/802 net/llc net/bridge net/packet net/unix net/vmw_vsock
	drivers/ata drivers/block drivers/cdrom drivers/char drivers/dax drivers/firmware drivers/i2c drivers/leds
	drivers/md drivers/message drivers/misc drivers/net/virtio_net.ko drivers/net/net_failover.ko drivers/net/veth.ko drivers/net/dummy.ko drivers/net/wireguard
	drivers/nvdimm drivers/nvme drivers/pci drivers/scsi drivers/target drivers/uio drivers/usb drivers/virt drivers/virtio
	drivers/watchdog net/failover net/netfilter net/ipv4 net/ipv6`)

// bootModules reach the root disk; their dependencies come with them. ext4 asks
// for its checksum by name, which no dependency tells.
var bootModules = []string{"virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "overlay"}

// modules puts the chosen modules into the root tree, without debug information:
// loading them is cheaper then, and nothing checks the signature that goes with it.
func (b *builder) modules() error {
	trees, err := filepath.Glob(filepath.Join(b.work, "kernel/lib/modules/*"))
	if err != nil || len(trees) != 1 {
		return fmt.Errorf("%d module trees", len(trees))
	}
	version := filepath.Base(trees[0])
	to := filepath.Join(b.work, "root/lib/modules", version)
	for _, f := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		if err := b.copyTree(filepath.Join(trees[0], f), filepath.Join(to, f)); err != nil {
			return err
		}
	}
	for _, dir := range moduleDirs {
		from := filepath.Join(trees[0], "kernel", dir)
		if !exists(from) {
			continue // built in, or of another kernel version
		}
		if err := b.copyTree(from, filepath.Join(to, "kernel", dir)); err != nil {
			return err
		}
	}
	if err := b.strip(to); err != nil {
		return err
	}
	depmod, err := lookPath("depmod")
	if err != nil {
		return err
	}
	if err := b.run(depmod, "-b", filepath.Join(b.work, "root"), version); err != nil {
		return err
	}
	return b.pickBootModules(to)
}

func (b *builder) copyTree(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return b.run("cp", "-a", from, to)
}

func (b *builder) strip(tree string) error {
	list, err := exec.CommandContext(b.ctx, "find", tree, "-name", "*.ko").Output()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(b.ctx, "xargs", "-P2", "-n1", "objcopy", "--strip-debug", "--remove-section=.BTF")
	cmd.Stdin = bytes.NewReader(list)
	return quiet(cmd)
}

// pickBootModules copies what loads first, named so that the order of names is
// the order of loading.
func (b *builder) pickBootModules(tree string) error {
	table, err := os.ReadFile(tree + "/modules.dep")
	if err != nil {
		return err
	}
	order, err := loadOrder(string(table), bootModules)
	if err != nil {
		return err
	}
	for i, file := range order {
		to := filepath.Join(b.work, "boot-modules", fmt.Sprintf("%02d-%s", i, filepath.Base(file)))
		if err := b.copyTree(filepath.Join(tree, file), to); err != nil {
			return err
		}
	}
	return nil
}

// loadOrder reads modules.dep (depmod(8)): "file: dependencies", each line's
// dependencies in the reverse order of loading.
func loadOrder(table string, names []string) ([]string, error) {
	needs := map[string][]string{}
	byName := map[string]string{}
	for line := range strings.Lines(table) {
		file, deps, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		needs[file] = strings.Fields(deps)
		byName[strings.TrimSuffix(filepath.Base(file), ".ko")] = file
	}
	var order []string
	for _, name := range names {
		file, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		first := slices.Clone(needs[file])
		slices.Reverse(first)
		for _, f := range append(first, file) {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	return order, nil
}
