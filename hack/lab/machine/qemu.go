package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/hack/lab/image"
)

// kernelLine: quiet and predictable. The guest's kernel need not protect itself,
// check its own ciphers or place itself at random. Nor may it place programs at random
// (norandmaps): QEMU translates code for an address, so it would translate each program
// again at each start (measured: 10 times lvcreate and lvremove 26 s with, 8 s without).
const kernelLine = "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable no_timer_check cryptomgr.notests rcupdate.rcu_expedited=1 nokaslr norandmaps random.trust_cpu=on usb_storage.delay_use=0"

// shape is the part of the machine that a saved state depends on. No argument
// here may differ between two machines of the same description.
func (s Spec) shape(img *image.Image) []string {
	args := []string{
		"-M", "q35,usb=off,smm=off",
		// qemu64 boots faster than "max", which loads drivers for every feature;
		// with rdrand the guest has random numbers from the start.
		"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "qemu64,+rdrand",
		"-smp", strconv.Itoa(s.CPUs), "-m", strconv.Itoa(s.Memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", img.Kernel, "-initrd", img.Initrd, "-append", kernelLine,
		"-device", "vmgenid,guid=auto", // two copies of a saved guest do not share their random numbers
		"-drive", "file=" + img.Root + ",if=none,id=root,format=raw,readonly=on", "-device", "virtio-blk-pci,drive=root,serial=LABROOT,addr=3",
		"-device", "virtio-scsi-pci,id=vs,addr=4", "-device", "virtio-serial-pci,addr=5", "-device", "qemu-xhci,id=xhci,addr=6",
		"-device", "virtserialport,id=agent-port,chardev=agent,name=lab.agent",
	}
	for i := range shares {
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=share%d,chassis=%d,slot=%d,addr=7.%x,multifunction=on", i, 100+i, 100+i, i))
	}
	for i := range slots {
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=slot%d,chassis=%d,slot=%d,addr=%x.%x,multifunction=on", i+1, i+1, i+1, 8+i/8, i%8))
	}
	if s.NativeSlots {
		args = append(args, "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")
	}
	if slices.ContainsFunc(s.Drives, func(d Drive) bool { return d.Kind == SAS }) {
		args = append(args, "-device", "mptsas1068,id=sas,addr=2")
	}
	return args
}

// local is the part that belongs to this one machine: its sockets, its files and
// the drives that are there from the start.
func (m *Machine) local(atStart func(Drive) bool) []string {
	in := func(name string) string { return filepath.Join(m.Dir, name) }
	args := []string{
		"-name", "drivebay-lab", "-serial", "file:" + in("console"),
		"-qmp", "unix:" + in("qmp") + ",server=on,wait=off",
		"-chardev", "socket,id=agent,path=" + in("agent") + ",server=on,wait=off",
	}
	for i, tag := range shareTags(m.spec) {
		args = append(args, "-fsdev", fmt.Sprintf("local,id=fs%d,path=%s,security_model=none,multidevs=remap,readonly=on", i, strings.ReplaceAll(m.spec.Shares[tag], ",", ",,")))
	}
	sata := 0
	for _, d := range m.spec.Drives {
		if !atStart(d) {
			continue
		}
		own := m.drives[d.ID]
		args = append(args, "-blockdev", asJSON(blockdev(own.Drive)))
		for _, dev := range own.devices {
			if d.Kind == SATA {
				dev["bus"] = "ide." + strconv.Itoa(sata) // a port has room for one drive
				sata++
			}
			args = append(args, "-device", asJSON(dev))
		}
		own.plugged = true
	}
	return args
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return string(b)
}

func shareTags(s Spec) []string { return slices.Sorted(maps.Keys(s.Shares)) }

// Share mounts one of the description's folders in the guest, as /share/TAG; when
// it is there already nothing happens. Not every test needs one, and a machine
// that has one cannot be saved.
func (m *Machine) Share(ctx context.Context, tag string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(shareTags(m.spec), tag)
	if i < 0 {
		return fmt.Errorf("the machine has no share %q", tag)
	}
	if m.mounted[tag] {
		return nil
	}
	n := strconv.Itoa(i)
	dev := device{"driver": "virtio-9p-pci", "id": "share-fs" + n, "bus": "share" + n, "fsdev": "fs" + n, "mount_tag": tag}
	if _, err := m.control.Run(ctx, "device_add", dev); err != nil {
		return fmt.Errorf("share %s: %w", m.spec.Shares[tag], err)
	}
	if err := m.Guest.Share(ctx, tag); err != nil {
		return err
	}
	m.mounted[tag] = true
	return nil
}
