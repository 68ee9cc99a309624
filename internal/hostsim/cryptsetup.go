package hostsim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// Exit statuses of cryptsetup(8).
const (
	cryptMisused = 1
	cryptNoKey   = 2
	cryptNoDev   = 4
	cryptBusy    = 5
)

var cryptActions = map[string]func(*process, flags) int{
	"luksFormat": luksFormat, "open": luksOpen, "luksOpen": luksOpen, "close": luksClose, "luksClose": luksClose, "resize": luksResize,
	"luksAddKey": luksAddKey, "luksRemoveKey": luksRemoveKey, "status": luksStatus, "luksErase": luksErase, "isLuks": luksIs, "luksUUID": luksIs,
}

// cryptsetup runs cryptsetup(8) 2.6.
func cryptsetup(p *process) int {
	f, err := getopt(p.argv[1:], "qd:", "batch-mode", "version", "type:", "uuid:", "label:", "subsystem:", "offset:", "luks2-keyslots-size:", "pbkdf:", "pbkdf-memory:",
		"pbkdf-parallel:", "pbkdf-force-iterations:", "iter-time:", "key-file:", "keyfile-size:", "test-passphrase", "sector-size:")
	switch {
	case err != nil:
		return p.fail(cryptMisused, "Usage: cryptsetup [OPTION...] <action> <action-specific>\ncryptsetup: %v", err)
	case f.has("version"):
		p.say("cryptsetup 2.6.1 flags: UDEV BLKID KEYRING KERNEL_CAPI")
		return 0
	case len(f.words) < 2 || cryptActions[f.words[0]] == nil:
		return p.fail(cryptMisused, "Usage: cryptsetup [OPTION...] <action> <action-specific>\ncryptsetup: Unknown action.")
	case f.has("key-file") && f.set["key-file"] != "-":
		return p.fail(cryptMisused, "Failed to open key file.")
	}
	do := cryptActions[f.words[0]]
	f.words = f.words[1:]
	return do(p, f)
}

// onHeader calls work with the device and its header, with the lock held.
func onHeader(p *process, name string, write bool, work func(dev *block.Device, h content.LUKSHeader, is bool) int) int {
	dev := p.device(name)
	if dev == nil {
		return p.fail(cryptNoDev, "Device %s does not exist or access denied.", name)
	}
	code := 0
	err := dev.Do(p.ctx, block.Access{Write: write, N: 1 << 20}, func() error {
		h, is := content.ReadLUKS(dev.Read)
		code = work(dev, h, is)
		return nil
	})
	if err != nil {
		return p.fail(cryptNoDev, "Device %s: %s", name, reason(err))
	}
	return code
}

func luksFormat(p *process, f flags) int {
	if f.set["type"] != "luks2" || !f.has("batch-mode") && !f.has("q") || len(p.input) == 0 {
		return p.fail(cryptMisused, "Nothing to read on input.")
	}
	if _, ok := content.ParseUUID(f.set["uuid"]); !ok {
		return p.fail(cryptMisused, "Wrong LUKS UUID format provided.")
	}
	sectors, err := strconv.ParseUint(f.set["offset"], 10, 40)
	if err != nil || len(f.set["label"]) > 47 || len(f.set["subsystem"]) > 47 {
		return p.fail(cryptMisused, "cryptsetup: invalid numeric value")
	}
	return onHeader(p, f.words[0], true, func(dev *block.Device, _ content.LUKSHeader, _ bool) int {
		if dev.Busy() {
			return p.fail(cryptBusy, "Cannot use device %s which is in use (already mapped or mounted).", f.words[0])
		}
		if dev.Length() <= sectors*512 {
			return p.fail(cryptMisused, "Device %s is too small.", f.words[0])
		}
		h := content.LUKSHeader{UUID: f.set["uuid"], Label: f.set["label"], Subsystem: f.set["subsystem"], LUKSKeys: content.LUKSKeys{Offset: sectors * 512, Slots: []content.LUKSSlot{content.NewSlot(p.input, content.NewKey())}}}
		if h.Store(dev.Write) != nil {
			return p.fail(cryptNoDev, "Cannot wipe header on device %s.", f.words[0])
		}
		dev.Changed()
		return 0
	})
}

func luksOpen(p *process, f flags) int {
	test := f.has("test-passphrase")
	if !test && len(f.words) != 2 {
		return p.fail(cryptMisused, "cryptsetup: open requires <device> [--type <type>] [<name>] as arguments")
	}
	return onHeader(p, f.words[0], false, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		if !is {
			return p.fail(cryptMisused, "Device %s is not a valid LUKS device.", f.words[0])
		}
		key, ok := h.Key(p.input)
		switch {
		case len(h.Slots) == 0:
			return p.fail(cryptMisused, "No usable keyslot is available.")
		case !ok:
			return p.fail(cryptNoKey, "No key available with this passphrase.")
		case test:
			return 0
		case p.m.MappedAs(f.words[1]) != nil:
			return p.fail(cryptBusy, "Device %s already exists.", f.words[1])
		case dev.Busy():
			return p.fail(cryptBusy, "Cannot use device %s which is in use (already mapped or mounted).", f.words[0])
		}
		data := &crypt{below: dev, off: h.Offset, size: dev.Length() - h.Offset, key: key}
		title := f.words[1]
		p.m.MapDevice(block.Mapped{Title: title, UUID: "CRYPT-LUKS2-" + strings.ReplaceAll(h.UUID, "-", "") + "-" + title}, data, []*block.Device{dev})
		return 0
	})
}

func luksClose(p *process, f flags) int {
	p.m.Mu.Lock()
	defer p.m.Mu.Unlock()
	d := p.m.MappedAs(f.words[0])
	switch {
	case d == nil:
		return p.fail(cryptNoDev, "Device %s is not active.", f.words[0])
	case d.Claimed() || d.Handles > 0:
		return p.fail(cryptBusy, "Device %s is still in use.", f.words[0])
	}
	d.Unmap()
	return 0
}

// luksResize needs the passphrase: the kernel keeps the key where another process cannot find it.
func luksResize(p *process, f flags) int {
	p.m.Mu.Lock()
	defer p.m.Mu.Unlock()
	d := p.m.MappedAs(f.words[0])
	if d == nil {
		return p.fail(cryptNoDev, "Device %s is not active.", f.words[0])
	}
	c, ok := d.Data.(*crypt)
	if !ok {
		return p.fail(cryptMisused, "Device %s is not a crypt device.", f.words[0])
	}
	h, _ := content.ReadLUKS(c.below.Read)
	if key, ok := h.Key(p.input); !ok || key != c.key {
		return p.fail(cryptNoKey, "No key available with this passphrase.")
	}
	c.size = c.below.Length() - c.off
	d.Changed()
	return 0
}

// luksAddKey reads the old passphrase and the new one from its input, one after the other.
// keyfile-size gives the length of the first.
func luksAddKey(p *process, f flags) int {
	n, err := strconv.Atoi(f.set["keyfile-size"])
	if err != nil || n <= 0 || n >= len(p.input) || len(f.words) != 2 || f.words[1] != "-" || f.set["key-file"] != "-" {
		return p.fail(cryptMisused, "Nothing to read on input.")
	}
	return onHeader(p, f.words[0], true, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		key, ok := h.Key(p.input[:n])
		switch {
		case !is:
			return p.fail(cryptMisused, "Device %s is not a valid LUKS device.", f.words[0])
		case !ok:
			return p.fail(cryptNoKey, "No key available with this passphrase.")
		case len(h.Slots) == content.MaxSlots:
			return p.fail(cryptMisused, "All key slots full.")
		}
		h.Slots = append(h.Slots, content.NewSlot(p.input[n:], key))
		if h.Store(dev.Write) != nil {
			return p.fail(cryptNoDev, "Cannot write header on device %s.", f.words[0])
		}
		return 0
	})
}

// luksRemoveKey removes the last key slot as well, without a question (2.6.1, tried).
func luksRemoveKey(p *process, f flags) int {
	return onHeader(p, f.words[0], true, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		i := h.Opens(p.input)
		switch {
		case !is:
			return p.fail(cryptMisused, "Device %s is not a valid LUKS device.", f.words[0])
		case i < 0:
			return p.fail(cryptNoKey, "No key available with this passphrase.")
		}
		h.Slots = slices.Delete(h.Slots, i, i+1)
		if h.Store(dev.Write) != nil {
			return p.fail(cryptNoDev, "Cannot write header on device %s.", f.words[0])
		}
		return 0
	})
}

func luksStatus(p *process, f flags) int {
	p.m.Mu.RLock()
	defer p.m.Mu.RUnlock()
	if d := p.m.MappedAs(f.words[0]); d == nil {
		p.say("/dev/mapper/%s is inactive.", f.words[0])
		return cryptNoDev
	}
	p.say("/dev/mapper/%s is active.\n  type:    LUKS2\n  cipher:  aes-xts-plain64", f.words[0])
	return 0
}

func luksErase(p *process, f flags) int {
	return onHeader(p, f.words[0], true, func(dev *block.Device, h content.LUKSHeader, is bool) int {
		h.Slots = nil
		if !is || h.Store(dev.Write) != nil {
			return p.fail(cryptMisused, "Device %s is not a valid LUKS device.", f.words[0])
		}
		return 0
	})
}

// luksIs reports by its exit status whether a device has a header; luksUUID prints the UUID.
func luksIs(p *process, f flags) int {
	return onHeader(p, f.words[0], false, func(_ *block.Device, h content.LUKSHeader, is bool) int {
		if !is {
			return cryptMisused
		}
		if p.argv[1] == "luksUUID" {
			p.say("%s", h.UUID)
		}
		return 0
	})
}
