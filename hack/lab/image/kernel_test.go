package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bzImage is a kernel file with its payload at an offset after so many sectors
// of setup (Documentation/arch/x86/boot.rst: the protected-mode part begins at
// (setup_sects+1)*512, 0 sectors mean 4).
func bzImage(sectors byte, offset, length uint32, size int, payload []byte) []byte {
	image := bytes.Repeat([]byte{0xEE}, size)
	image[0x1F1] = sectors
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(image[0x248:], offset)
	binary.LittleEndian.PutUint32(image[0x24C:], length)
	if sectors == 0 {
		sectors = 4
	}
	if at := (int(sectors)+1)*512 + int(offset); at < size {
		copy(image[at:], payload)
	}
	return image
}

func TestKernelPayload(t *testing.T) {
	payload := []byte("the packed kernel")
	n := uint32(len(payload))
	for name, test := range map[string]struct {
		image []byte
		found bool
	}{
		"in the middle":       {bzImage(3, 100, n, 5000, payload), true},
		"to the very end":     {bzImage(3, 100, n, 2048+100+len(payload), payload), true},
		"four sectors unsaid": {bzImage(0, 7, n, 5000, payload), true},
		"many sectors":        {bzImage(255, 0, n, 200000, payload), true},
		"one byte too long":   {bzImage(3, 100, n, 2048+100+len(payload)-1, payload), false},
		"far offset":          {bzImage(3, 0xFFFFFFFF, n, 5000, payload), false},
		"far length":          {bzImage(3, 100, 0xFFFFFFFF, 5000, payload), false},
		"both far":            {bzImage(3, 0xFFFFFFFF, 0xFFFFFFFF, 5000, payload), false},
		"too short to name":   {bzImage(3, 100, 5, 5000, payload), false},
		"nothing":             {bzImage(3, 100, 0, 5000, payload), false},
		"no magic":            {bytes.Repeat([]byte{0}, 5000), false},
		"only a head":         {bzImage(3, 100, n, 0x260, payload), false},
		"half a head":         {bzImage(3, 100, n, 0x260, payload)[:0x25F], false},
		"empty":               {nil, false},
	} {
		got, err := kernelPayload(test.image)
		if test.found && (err != nil || !bytes.Equal(got, payload)) || !test.found && err == nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestKernelCutShort(t *testing.T) {
	whole := bzImage(3, 100, 17, 5000, []byte("the packed kernel"))
	for n := range 2048 + 100 + 17 {
		if got, err := kernelPayload(whole[:n]); err == nil {
			t.Fatalf("of %d bytes: %q", n, got)
		}
	}
}

func FuzzKernelPayload(f *testing.F) {
	f.Add(bzImage(3, 100, 17, 5000, []byte("the packed kernel")))
	f.Add(bzImage(0, 0xFFFFFFFF, 0xFFFFFFFF, 0x260, nil))
	f.Add([]byte("HdrS"))
	f.Fuzz(func(t *testing.T, image []byte) {
		got, err := kernelPayload(image)
		if err == nil && (len(got) < 6 || !bytes.Contains(image, got)) {
			t.Errorf("%d bytes that are not in the file", len(got))
		}
	})
}

// TestUnpackKernel: with every program that is there to pack. All formats but
// gzip have the unpacked size at the end (the kernel's scripts/Makefile.lib,
// size_append), which is no part of what was packed.
func TestUnpackKernel(t *testing.T) {
	elf := bytes.Repeat([]byte("\x7fELF a kernel "), 1000)
	tested := 0
	for _, tool := range []string{"gzip", "xz", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			continue
		}
		pack := exec.Command(tool, "-c")
		pack.Stdin = bytes.NewReader(elf)
		packed, err := pack.Output()
		if err != nil {
			t.Fatal(err)
		}
		if tool != "gzip" {
			packed = binary.LittleEndian.AppendUint32(packed, uint32(len(elf)))
		}
		dir := t.TempDir()
		b := &builder{ctx: context.Background()}
		if err := os.WriteFile(dir+"/vmlinuz", bzImage(3, 0, uint32(len(packed)), 2048+len(packed)+100, packed), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := b.unpackKernel(dir+"/vmlinuz", dir+"/vmlinux"); err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		if got, err := os.ReadFile(dir + "/vmlinux"); err != nil || !bytes.Equal(got, elf) {
			t.Errorf("%s: %d bytes of %d, %v", tool, len(got), len(elf), err)
		}
		tested++
	}
	if tested == 0 {
		t.Error("not even gzip is there")
	}
}

func TestUnpackUnknown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(file, bzImage(3, 0, 8, 5000, []byte("LZOP\x00\x01\x02\x03")), 0o644); err != nil {
		t.Fatal(err)
	}
	err := (&builder{ctx: t.Context()}).unpackKernel(file, file+".elf")
	if err == nil || !strings.Contains(err.Error(), "4c 5a 4f 50") || !strings.Contains(err.Error(), "vmlinuz") {
		t.Errorf("error %v", err)
	}
	if exists(file + ".elf") {
		t.Error("it was unpacked all the same")
	}
}

// TestLoadOrder: depmod(8) lists of each module all that it needs, the one to
// load first at the end.
func TestLoadOrder(t *testing.T) {
	const table = `kernel/virtio/virtio.ko:
kernel/virtio/virtio_ring.ko: kernel/virtio/virtio.ko
kernel/virtio/virtio_pci.ko: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko
kernel/block/virtio_blk.ko: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko
kernel/fs/ext4.ko: kernel/fs/jbd2.ko kernel/fs/mbcache.ko
kernel/fs/mbcache.ko:
kernel/fs/jbd2.ko:
no colon here
`
	for _, test := range []struct {
		names, want []string
		missing     string
	}{
		{[]string{"virtio_pci"}, []string{"virtio", "virtio_ring", "virtio_pci"}, ""},
		{[]string{"virtio_blk", "virtio_pci", "ext4"}, []string{"virtio", "virtio_ring", "virtio_blk", "virtio_pci", "mbcache", "jbd2", "ext4"}, ""},
		{[]string{"ext4", "jbd2", "ext4"}, []string{"mbcache", "jbd2", "ext4"}, ""},
		{nil, nil, ""},
		{[]string{"virtio", "overlay"}, nil, "overlay"},
		{[]string{"virtio_ring.ko"}, nil, "virtio_ring.ko"},
	} {
		got, err := loadOrder(table, test.names)
		if test.missing != "" {
			if err == nil || !strings.Contains(err.Error(), test.missing) {
				t.Errorf("%v: error %v, want %q", test.names, err, test.missing)
			}
			continue
		}
		var names []string
		for _, file := range got {
			if !strings.HasPrefix(file, "kernel/") {
				t.Errorf("%v: %s is no path of the tree", test.names, file)
			}
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".ko"))
		}
		if err != nil || !slices.Equal(names, test.want) {
			t.Errorf("%v: %v, want %v; %v", test.names, names, test.want, err)
		}
	}
	again, err := loadOrder(table, []string{"virtio_pci"})
	if err != nil || again[0] != "kernel/virtio/virtio.ko" {
		t.Errorf("a second time: %v, %v", again, err)
	}
}

// TestPickBootModules: the order of names is the order of loading, beyond nine too.
func TestPickBootModules(t *testing.T) {
	tree := t.TempDir()
	var table strings.Builder
	var before []string
	for i := range 12 { // each needs all before it
		file := "kernel/m" + string(rune('z'-i)) + ".ko"
		table.WriteString(file + ": " + strings.Join(before, " ") + "\n")
		before = slices.Insert(before, 0, file)
	}
	for _, name := range bootModules {
		table.WriteString("kernel/" + name + ".ko: " + strings.Join(before, " ") + "\n")
		before = append(before, "kernel/"+name+".ko")
	}
	for _, file := range before {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, file), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(tree+"/modules.dep", []byte(table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	b := &builder{ctx: t.Context(), work: t.TempDir()}
	if err := b.pickBootModules(tree); err != nil {
		t.Fatal(err)
	}
	order, err := loadOrder(table.String(), bootModules)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(b.work + "/boot-modules/*.ko") // sorted, as the initial file system loads them
	if err != nil || len(files) != len(order) {
		t.Fatalf("%d files of %d, %v", len(files), len(order), err)
	}
	for i, file := range files {
		if content, err := os.ReadFile(file); err != nil || string(content) != order[i] {
			t.Errorf("%d to load is %s, want %s; %v", i, content, order[i], err)
		}
	}
}
