package inventory

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

var legalID = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// checkListing holds what is true of every listing.
func checkListing(tb testing.TB, l Listing) {
	tb.Helper()
	seen := map[string]bool{}
	for _, d := range l.Drives {
		if !legalID.MatchString(d.ID) || len(d.ID) > 253 {
			tb.Errorf("%s: id %q is no name", d.Name, d.ID)
		}
		if seen[d.ID] {
			tb.Errorf("%s: id %s is taken", d.Name, d.ID)
		}
		seen[d.ID] = true
		if len(d.Paths) == 0 {
			tb.Errorf("%s: no path", d.Name)
		}
		for _, s := range []string{d.Vendor, d.Model, d.Serial, d.Firmware, d.IdentityIssue} {
			if !utf8.ValidString(s) {
				tb.Errorf("%s: %q is no UTF-8", d.Name, s)
			}
		}
	}
}

func corpusMachine(t *testing.T, folder string) (host.Machine, string) {
	t.Helper()
	root, told := os.LookupEnv("DRIVEBAY_CORPUS")
	if !told {
		root = "../../../../shared/corpus"
	}
	dir := filepath.Join(root, folder)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" && told {
			t.Fatal(err)
		}
		t.Skipf("no recordings at %s: set DRIVEBAY_CORPUS to their folder", dir)
	}
	m, err := host.Recorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m, dir
}

// TestRecordedMachine holds a recorded machine against what lsblk said of it.
func TestRecordedMachine(t *testing.T) {
	m, dir := corpusMachine(t, "vm-recording")
	mounts, err := m.Mounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := Observe(m, mounts, Options{})
	checkListing(t, l)
	if !l.Complete || len(l.Problems) > 0 {
		t.Errorf("complete %v, problems %q", l.Complete, l.Problems)
	}
	b, err := os.ReadFile(filepath.Join(dir, "healthy/lsblk-O.json"))
	if err != nil {
		t.Fatal(err)
	}
	var referee struct {
		Devices []struct {
			Name, Type, Model, Serial, Rev, Tran, WWN, HCTL, State string
			Size                                                   uint64
			Log                                                    int    `json:"log-sec"`
			Phy                                                    int    `json:"phy-sec"`
			RM                                                     bool   `json:"rm"`
			RO                                                     bool   `json:"ro"`
			Rota                                                   bool   `json:"rota"`
			DevNum                                                 string `json:"maj:min"`
		} `json:"blockdevices"`
	}
	if err := json.Unmarshal(b, &referee); err != nil {
		t.Fatal(err)
	}
	drives := byName(l)
	disks := 0
	for _, r := range referee.Devices {
		if r.Type != "disk" {
			continue
		}
		disks++
		d, ok := drives[r.Name]
		if !ok {
			t.Errorf("%s is not listed", r.Name)
			continue
		}
		type fields struct {
			model, serial, state, hctl, dev string
			size                            uint64
			log, phy                        int
			rm, ro                          bool
		}
		if r.HCTL == "" { // lsblk looks for an address of SCSI devices only, and for no state of others
			r.HCTL, r.State = d.Paths[0].Address, d.Paths[0].State
			r.DevNum = d.Paths[0].DevNum
		}
		got := fields{d.Model, d.Serial, d.Paths[0].State, d.Paths[0].Address, d.Paths[0].DevNum, d.Size, d.LogicalBlock, d.PhysBlock, d.Removable, d.ReadOnly}
		want := fields{r.Model, r.Serial, r.State, r.HCTL, r.DevNum, r.Size, r.Log, r.Phy, r.RM, r.RO}
		if got != want {
			t.Errorf("%s: %+v, lsblk says %+v", r.Name, got, want)
		}
		if wwn := strings.Replace(d.WWN, "naa.", "0x", 1); wwn != r.WWN && !strings.HasPrefix(r.WWN, "nvme.") { // that one the kernel makes up
			t.Errorf("%s: wwn %q, lsblk says %q", r.Name, d.WWN, r.WWN)
		}
		if r.Tran != "" && r.Tran != strings.ToLower(d.Transport.String()) {
			t.Errorf("%s: %v, lsblk says %s", r.Name, d.Transport, r.Tran)
		}
	}
	if disks != len(l.Drives) || disks < 7 {
		t.Errorf("%d drives, lsblk lists %d", len(l.Drives), disks)
	}
	for name, want := range map[string]string{
		"sda": "naa-5000c500aaaabbbb SCSI HDD", "sdc": "naa-5000c50012345678 SATA HDD", "sdd": "sn-qemu-qemu-harddisk-usbser1 USB UNKNOWN",
		"nvme0n1": "sn-qemu-nvme-ctrl-nvmeser1 NVMe NVME", "vda": "sn-vblkser1 virtio UNKNOWN",
	} {
		d := drives[name]
		if got := d.ID + " " + d.Transport.String() + " " + d.Type.String(); !strings.EqualFold(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if n := drives["nvme0n1"]; n.Paths[0].Name != "nvme0c0n1" || n.Paths[0].State != "live" {
		t.Errorf("ways to nvme0n1: %+v", n.Paths)
	}
	if u := uses(drives["vda"]); !strings.Contains(u, "mount:dm-0:/mnt/l") || !strings.Contains(u, "lvm:dm-0:vgdata-lin1") || drives["vda"].System {
		t.Errorf("vda: %s, system %v", u, drives["vda"].System)
	}
	if d := drives["sdb"]; uses(d) != "partition:sdb1 partition:sdb2" || len(d.Content.Signatures) != 1 || d.Content.Signatures[0].Format != "gpt" {
		t.Errorf("sdb: %s, %+v", uses(d), d.Content)
	}
}

// ttar unpacks the archives of prometheus fixtures: "Directory: NAME", "SymlinkTo:
// TARGET" and "Lines: N" with the lines after it, "EOF" in them for no newline.
func ttar(t *testing.T, archive, dir string) {
	t.Helper()
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	name := ""
	for i := 0; i < len(lines); i++ {
		key, value, _ := strings.Cut(lines[i], ": ")
		full := filepath.Join(dir, name)
		switch key {
		case "Directory":
			err = os.MkdirAll(filepath.Join(dir, value), 0o755)
		case "Path":
			name = value
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		case "SymlinkTo":
			err = os.Symlink(value, full)
		case "Lines":
			n, _ := strconv.Atoi(value)
			body := strings.Join(lines[i+1:i+1+n], "\n") + "\n"
			body = strings.ReplaceAll(strings.TrimSuffix(body, "EOF\n"), "NULLBYTE", "\x00")
			err = os.WriteFile(full, []byte(body), 0o644)
			i += n
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
}

// TestTrimmedMachines reads the remains of several machines: nothing is certain
// but that they are read without a fall.
func TestTrimmedMachines(t *testing.T) {
	root := os.Getenv("DRIVEBAY_CORPUS")
	if root == "" {
		root = "../../../../shared/corpus"
	}
	for archive, want := range map[string]struct{ inner, drives string }{
		"sys.ttar":             {".", ""},
		"procfs-fixtures.ttar": {"fixtures", "sda"},
	} {
		file := filepath.Join(root, "prometheus-sysfs", archive)
		if _, err := os.Stat(file); err != nil {
			t.Skipf("no archive %s: set DRIVEBAY_CORPUS to its folder", file)
		}
		dir := t.TempDir()
		ttar(t, file, dir)
		m, err := host.Recorded(filepath.Join(dir, want.inner))
		if err != nil {
			t.Fatal(err)
		}
		l := Observe(m, nil, Options{Loop: true})
		checkListing(t, l)
		t.Logf("%s: complete %v, %q", archive, l.Complete, l.Problems)
		for _, d := range l.Drives {
			t.Logf("%s %s %v %v %d B, %s", d.Name, d.ID, d.Type, d.Transport, d.Size, uses(d))
		}
	}
}

func TestWhatIsADrive(t *testing.T) {
	w := hosttest.Tree{}
	w.SATA(1, "sda", map[string]string{"serial": "A1"})
	w.SATA(2, "sdb", map[string]string{"serial": "EMPTY", "block/removable": "1", "block/size": "0"}) // a card reader without a card
	usb := "sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0"
	w.SCSI(usb, "sdc", map[string]string{"serial": "U1", "block/removable": "1"})
	w.SATA(4, "sdd", map[string]string{"type": "5"})                       // a CD drive of another name
	w.SATA(5, "sde", map[string]string{"serial": "A5", "block/size": "0"}) // a drive whose capacity the kernel could not read
	for i, name := range []string{"sr0", "fd0", "zram0", "ram0", "md0", "nbd0", "dm-9", "mmcblk0boot0", "mmcblk0boot1", "mmcblk0rpmb", "nvme0c0n1"} {
		w.Block("sys/devices/virtual/block", name, "1:"+strconv.Itoa(i), nil)
	}
	mmc := "sys/devices/platform/mmc_host/mmc0/mmc0:0001"
	w[mmc+"/name"], w[mmc+"/serial"], w[mmc+"/type"] = "DG4016\n", "0x12345678\n", "MMC\n"
	w[w.Block(mmc+"/block", "mmcblk0", "179:0", nil)+"/device"] = "-> " + mmc
	w.Block("sys/devices/virtual/block", "loop0", "7:0", map[string]string{"loop/backing_file": "/x"})
	w.Block("sys/devices/virtual/block", "loop1", "7:1", map[string]string{"size": "0"})
	w["sys/block/sdx"] = "-> sys/devices/nowhere" // it went away
	w["sys/devices/odd/sdy/size"] = "/"           // an attribute that is a folder: there, and not to be read
	w["sys/block/sdy"] = "-> sys/devices/odd/sdy"
	w["sys/block/sdz/size"], w["sys/block/sdz/dev"] = "2048", "65:0" // a folder instead of a link

	l, drives := listTree(t, w, Options{})
	if got, want := names(l), "mmcblk0 sda sdc sde sdz"; got != want {
		t.Errorf("drives %q, want %q", got, want)
	}
	if l.Complete || len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "sdy") {
		t.Errorf("with a device that cannot be read: complete %v, %q", l.Complete, l.Problems)
	}
	if d := drives["mmcblk0"]; d.Transport != drivebay.TransportMMC || d.ID != "sn-dg4016-0x12345678-"+identity.Hash("0x12345678") {
		t.Errorf("mmcblk0: %v %s", d.Transport, d.ID)
	}
	if d := drives["sdc"]; d.Transport != drivebay.TransportUSB || d.Type != drivebay.TypeUnknown || !d.Removable {
		t.Errorf("sdc: %v %v removable %v", d.Transport, d.Type, d.Removable)
	}
	if d := drives["sdz"]; d.Size != 2048*512 || d.ID != "path-sdz" {
		t.Errorf("sdz: %d %s", d.Size, d.ID)
	}
	delete(w, "sys/devices/odd/sdy/size")
	delete(w, "sys/block/sdy")
	if l, _ := listTree(t, w, Options{Loop: true}); !l.Complete || names(l) != "loop0 mmcblk0 sda sdc sde sdz" {
		t.Errorf("with loops: complete %v, %q", l.Complete, names(l))
	}
	for name := range w {
		if strings.HasPrefix(name, "sys/block/") {
			delete(w, name)
		}
	}
	files := host.Files(without{w.Machine(t), "sys/block"})
	if l := Observe(files, nil, Options{}); !l.Complete || names(l) != "mmcblk0 sda sdc sde" {
		t.Errorf("from sys/class/block: complete %v, %q", l.Complete, names(l))
	}
}

// without is a machine that lacks a folder.
type without struct {
	host.Files
	dir string
}

func (w without) ReadDir(name string) ([]string, error) {
	if name == w.dir {
		return nil, &fs.PathError{Op: "list", Path: name, Err: fs.ErrNotExist}
	}
	return w.Files.ReadDir(name)
}

// refusing is a machine on which some names fail.
type refusing struct {
	host.Files
	fail func(name string) error
}

func (r refusing) ReadFile(name string) ([]byte, error) {
	if err := r.fail(name); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return r.Files.ReadFile(name)
}

func (r refusing) ReadDir(name string) ([]string, error) {
	if err := r.fail(name); err != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: err}
	}
	return r.Files.ReadDir(name)
}

func (r refusing) Resolve(name string) (string, error) {
	if err := r.fail(name); err != nil && errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return r.Files.Resolve(name)
}

func TestFailures(t *testing.T) {
	w := hosttest.Tree{}
	w.SATA(1, "sda", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001", "uevent": "x", "block/uevent": "x"})
	w.SATA(2, "sdb", map[string]string{"serial": "A2", "wwid": "naa.5000c500a0000002", "uevent": "x", "block/uevent": "x"})
	m := w.Machine(t)
	rows := []struct {
		name     string
		match    string
		err      error
		drives   string
		complete bool
		problems int
	}{
		{"nothing", "^$", fs.ErrPermission, "sda sdb", true, 0},
		{"the list refused", "^sys/block$", fs.ErrPermission, "", false, 1},
		{"the list broken", "^sys/block$", errors.New("input/output error"), "", false, 1},
		{"serials refused", "vpd_pg80", fs.ErrPermission, "sda sdb", true, 1},
		{"everything of one refused", "ata2/.*", fs.ErrPermission, "sda", false, 2},
		{"the size of one broken", "sdb/size", errors.New("input/output error"), "sda", false, 1},
		{"one vanishes while it is read", "(sdb|ata2).*", fs.ErrNotExist, "sda", true, 0},
		{"the attributes of one vanish", "ata2/.*0:0:0/(vendor|model|wwid|vpd_pg80|state)", fs.ErrNotExist, "sda sdb", true, 0},
		{"one is being taken away", "sdb/device/(uevent|vendor|model)", fs.ErrNotExist, "sda", true, 0},
		{"one is nearly gone", "sdb/(dev|uevent)", fs.ErrNotExist, "sda", true, 0},
	}
	for _, r := range rows {
		re := regexp.MustCompile(r.match)
		l := Observe(refusing{m, func(name string) error {
			if re.MatchString(name) {
				return r.err
			}
			return nil
		}}, nil, Options{})
		checkListing(t, l)
		if names(l) != r.drives || l.Complete != r.complete || len(l.Problems) != r.problems {
			t.Errorf("%s: %q complete %v %q, want %q complete %v and %d problems", r.name, names(l), l.Complete, l.Problems, r.drives, r.complete, r.problems)
		}
	}
}

// A copy of a machine's files may lack the uevent files of some drives: all drives are listed. On a live
// machine the kernel is removing such a drive.
func TestUeventsMissing(t *testing.T) {
	for lacks, live := range map[string]string{"": "sda sdb", "uevent": "sdb", "block/uevent": "sdb"} {
		w := hosttest.Tree{}
		of := map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001", "uevent": "x", "block/uevent": "x"}
		delete(of, lacks)
		w.SATA(1, "sda", of)
		w.SATA(2, "sdb", map[string]string{"serial": "A2", "wwid": "naa.5000c500a0000002", "uevent": "x", "block/uevent": "x"})
		m := w.Machine(t)
		if l := Observe(m, nil, Options{}); names(l) != "sda sdb" || !l.Complete {
			t.Errorf("recording without %q: %q", lacks, names(l))
		}
		if l := Observe(refusing{m, func(string) error { return nil }}, nil, Options{}); names(l) != live || !l.Complete {
			t.Errorf("live machine without %q: %q, want %q", lacks, names(l), live)
		}
	}
}
