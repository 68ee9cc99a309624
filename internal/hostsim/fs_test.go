package hostsim_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

const (
	kubelet = "/var/lib/kubelet"
	someID  = "6d1e5a3c-9d2f-4c55-9a0e-3b1f5c7d9e21"
)

func at(name string) host.Place { return host.Place{Root: kubelet, Name: name} }

// exitCode runs a program and gives its status.
func exitCode(t testing.TB, m *hostsim.Machine, argv ...string) int {
	t.Helper()
	_, err := m.Run(t.Context(), argv...)
	if exit, ok := errors.AsType[*host.ExitError](err); ok {
		return exit.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// mounted makes a filesystem on a partition of sda and mounts it.
func mounted(t testing.TB, m *hostsim.Machine, kind string, options ...string) host.NewMount {
	t.Helper()
	d := openDisk(t, m, "/dev/sda", false)
	must(t, d.AddPartition(1, mib, 1<<30), d.Close())
	argv := map[string][]string{"ext4": {"mkfs.ext4", "-q", "-F", "-U", someID, "-E", "nodiscard"}, "xfs": {"mkfs.xfs", "-q", "-f", "-K", "-m", "uuid=" + someID}, "btrfs": {"mkfs.btrfs", "-q", "-f", "-U", someID}}[kind]
	if code := exitCode(t, m, append(argv, "/dev/sda1")...); code != 0 {
		t.Fatalf("%v ended with %d", argv, code)
	}
	n := host.NewMount{Device: "/dev/sda1", FS: kind, At: at("stage/vol"), Options: options}
	must(t, m.MakeFolder(n.At), m.Mount(t.Context(), n))
	return n
}

func mountAt(t testing.TB, m *hostsim.Machine, target string) *host.Mount {
	t.Helper()
	list, err := m.Mounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range slices.Backward(list) {
		if x.Target == target {
			return &x
		}
	}
	return nil
}

func TestMount(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			m, _ := load(t, small)
			n := mounted(t, m, kind, "noatime", "discard")
			x := mountAt(t, m, kubelet+"/stage/vol")
			if x == nil || x.FS != kind || x.Source != "/dev/sda1" || (x.DevNum == "8:1") == (kind == "btrfs") || !strings.Contains(x.Opts, "noatime") || !strings.Contains(x.Opts, "discard") {
				t.Fatalf("the mount table says %+v", x)
			}
			if info := read(t, m, "proc/self/mountinfo"); !strings.Contains(info, " / "+kubelet+"/stage/vol rw,noatime - "+kind+" /dev/sda1 rw,discard") {
				t.Errorf("mountinfo: %s", info)
			}
			if udev := read(t, m, "run/udev/data/b8:1"); !strings.Contains(udev, "E:ID_FS_TYPE="+kind+"\n") || !strings.Contains(udev, "E:ID_FS_UUID="+someID+"\n") {
				t.Errorf("udev knows of it: %s", udev)
			}
			live := map[string]string{"ext4": "sys/fs/ext4/sda1/errors_count", "xfs": "sys/fs/xfs/sda1", "btrfs": "sys/fs/btrfs/" + someID + "/devices/sda1"}[kind]
			if _, err := m.Resolve(live); err != nil {
				t.Error(err)
			}
			must(t, m.MakeFile(at("pods/1/target/file")), m.MakeFolder(at("pods/1/ro")))
			must(t, m.Bind(t.Context(), n.At, at("pods/1/ro"), true))
			if x := mountAt(t, m, kubelet+"/pods/1/ro"); x == nil || !strings.HasPrefix(x.Opts, "ro,") || x.Source != "/dev/sda1" {
				t.Errorf("bound read-only as %+v", x)
			}
			if err := m.MakeFolder(at("pods/1/ro/x")); err == nil {
				t.Error("a folder is made in a read-only mount")
			}
			must(t, m.MakeFolder(at("stage/vol/data")))
			if kind, err := m.Look(at("pods/1/ro/data")); kind != host.PlaceFolder {
				t.Errorf("the other mount shows %v, %v", kind, err)
			}
			if _, err := m.OpenDisk(t.Context(), "/dev/sda", true); !errors.Is(err, host.ErrBusy) {
				t.Errorf("a mounted drive alone: %v", err)
			}
			before, err := m.Usage(t.Context(), n.At)
			must(t, err, m.Fill("/dev/sda1", 100*mib))
			after, err := m.Usage(t.Context(), at("pods/1/ro"))
			if must(t, err); before.Free-after.Free != 100*mib || before.Bytes > 1<<30 || before.Bytes < 1<<30*9/10 || (before.Inodes == 0) != (kind == "btrfs") || before.Available > before.Free {
				t.Errorf("usage %+v, then %+v", before, after)
			}
			must(t, m.Unmount(t.Context(), at("pods/1/ro")), m.Unmount(t.Context(), n.At))
			if _, err := m.Resolve(live); err == nil {
				t.Error("it is in sysfs after it was unmounted")
			}
			if kind, _ := m.Look(at("stage/vol/data")); kind != host.PlaceNothing {
				t.Errorf("below it there is %v", kind)
			}
			must(t, m.Mount(t.Context(), n))
			if again, err := m.Usage(t.Context(), n.At); err != nil || again != after {
				t.Errorf("mounted again it has %+v, had %+v: %v", again, after, err)
			}
			d := openDisk(t, m, "/dev/sda", false)
			must(t, d.ResizePartition(1, mib, 2<<30), m.Grow(t.Context(), n.At, kind))
			if grown, err := m.Usage(t.Context(), n.At); err != nil || grown.Bytes < before.Bytes*19/10 {
				t.Errorf("grown it has %+v, had %+v: %v", grown, before, err)
			}
			if count, err := m.ReadFolder(t.Context(), n.At); err != nil || count != map[string]int{"ext4": 2, "xfs": 1, "btrfs": 1}[kind] {
				t.Errorf("the root has %d entries: %v", count, err)
			}
		})
	}
}

// TestMountRefused: what the kernel does not do.
func TestMountRefused(t *testing.T) {
	m, _ := load(t, small)
	n := mounted(t, m, "ext4")
	try := func(change func(*host.NewMount)) error {
		other := n
		other.At = at("other")
		change(&other)
		return m.Mount(t.Context(), other)
	}
	must(t, m.MakeFolder(at("other")), m.MakeFile(at("file")))
	m.PutLink(kubelet + "/link")
	for what, c := range map[string]struct {
		err, want error
	}{
		"no folder":              {try(func(n *host.NewMount) { n.At = at("none") }), fs.ErrNotExist},
		"a file":                 {try(func(n *host.NewMount) { n.At = at("file") }), errAny},
		"a link":                 {try(func(n *host.NewMount) { n.At = at("link") }), host.ErrEscape},
		"below a link":           {try(func(n *host.NewMount) { n.At = at("link/x") }), host.ErrEscape},
		"out of the root":        {try(func(n *host.NewMount) { n.At = at("../x") }), host.ErrEscape},
		"another filesystem":     {try(func(n *host.NewMount) { n.FS = "xfs" }), errAny},
		"an unknown one":         {try(func(n *host.NewMount) { n.FS = "zfs" }), host.ErrNotHere},
		"an unknown option":      {try(func(n *host.NewMount) { n.Options = []string{"cheese"} }), errAny},
		"no device":              {try(func(n *host.NewMount) { n.Device = "/dev/sdq" }), host.ErrGone},
		"a blank drive":          {try(func(n *host.NewMount) { n.Device = "/dev/sdb" }), errAny},
		"read-only beside rw":    {try(func(n *host.NewMount) { n.ReadOnly = true }), host.ErrBusy},
		"remove what is mounted": {m.Remove(n.At), host.ErrBusy},
		"remove what is full":    {m.Remove(at("stage")), errAny},
		"remove a link":          {m.Remove(at("link")), host.ErrEscape},
		"a folder at a file":     {m.MakeFolder(at("file")), errAny},
		"a folder below a file":  {m.MakeFolder(at("file/x")), errAny},
		"a folder below a link":  {m.MakeFolder(at("link/x")), host.ErrEscape},
		"unmount a folder":       {m.Unmount(t.Context(), at("other")), host.ErrNotMounted},
		"unmount nothing":        {m.Unmount(t.Context(), at("none")), host.ErrNotMounted},
		"unmount the root":       {m.Unmount(t.Context(), host.Place{Root: "/", Name: "dev"}), host.ErrBusy},
		"remove nothing":         {m.Remove(at("none")), nil},
		"make what is there":     {m.MakeFolder(at("other")), nil},
	} {
		if !like(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	if kind, err := m.LookAt(kubelet + "/link"); kind != host.PlaceOther || err != nil {
		t.Errorf("a link is %v, %v", kind, err)
	}
	release, err := m.HoldMount(kubelet + "/stage/vol")
	must(t, err)
	if err := m.Unmount(t.Context(), n.At); !errors.Is(err, host.ErrBusy) {
		t.Errorf("unmounted while it is used: %v", err)
	}
	release()
	must(t, m.Unmount(t.Context(), n.At))
}

// TestRawPlace: a device appears at a file, over and over, and goes from it.
func TestRawPlace(t *testing.T) {
	m, _ := load(t, small)
	must(t, m.MakeFile(at("dev")))
	must(t, m.BindDevice(t.Context(), "/dev/sda", at("dev"), true))
	if kind, err := m.Look(at("dev")); kind != host.PlaceDevice || err != nil {
		t.Errorf("there is %v, %v", kind, err)
	}
	must(t, m.MakeFile(at("pod")), m.Bind(t.Context(), at("dev"), at("pod"), false))
	if x := mountAt(t, m, kubelet+"/pod"); x == nil || x.Root != "/sda" || x.FS != "devtmpfs" || !strings.HasPrefix(x.Opts, "ro") {
		t.Errorf("the mount table says %+v", x)
	}
	must(t, m.Unmount(t.Context(), at("pod")), m.UnmountBehind(kubelet+"/dev"))
	if kind, _ := m.Look(at("dev")); kind != host.PlaceFile {
		t.Errorf("there is %v", kind)
	}
	must(t, m.Remove(at("dev")), m.RemovePlace(kubelet+"/pod"))
}

// TestMountFaults: what fails below a filesystem shows where it shows on Linux.
func TestMountFaults(t *testing.T) {
	m, _ := load(t, small)
	n := mounted(t, m, "ext4", "errors=remount-ro")
	inject(t, m, "2", "eio")
	if _, err := m.Usage(t.Context(), n.At); err != nil {
		t.Errorf("statfs notices: %v", err)
	}
	if _, err := m.ReadFolder(t.Context(), n.At); err == nil {
		t.Error("a folder is read from a drive that fails")
	}
	if got := read(t, m, "sys/fs/ext4/sda1/errors_count"); got != "1" {
		t.Errorf("%s errors are counted", got)
	}
	if x := mountAt(t, m, kubelet+"/stage/vol"); !slices.Contains(strings.Split(x.Opts, ","), "ro") {
		t.Errorf("it is mounted %s", x.Opts)
	}
	inject(t, m, "2", "heal")
	if _, err := m.ReadFolder(t.Context(), n.At); err != nil || read(t, m, "sys/fs/ext4/sda1/errors_count") != "0" {
		t.Errorf("after it was healed: %v", err)
	}
	inject(t, m, "2", "hang")
	done := make(chan error)
	go func() { done <- m.Unmount(t.Context(), n.At) }()
	select {
	case err := <-done:
		t.Fatalf("unmounted while the drive hangs: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	if mountAt(t, m, kubelet+"/stage/vol") == nil {
		t.Error("the mount went before its data was written")
	}
	inject(t, m, "2", "heal")
	must(t, <-done, m.Mount(t.Context(), n))
	inject(t, m, "2", "vanish")
	if _, err := m.ReadFolder(t.Context(), n.At); err == nil || errors.Is(err, host.ErrGone) {
		t.Errorf("a folder of a drive that was pulled: %v", err)
	}
	inject(t, m, "2", "return") // the old name is not free while it is mounted
	if x := mountAt(t, m, kubelet+"/stage/vol"); x == nil {
		t.Fatal("the mount went with the drive")
	}
	if _, err := m.Resolve("sys/block/sda"); err == nil {
		t.Error("the drive came back under a name that is in use")
	}
	must(t, m.Unmount(t.Context(), n.At))
	inject(t, m, "2", "vanish")
	inject(t, m, "2", "return")
	if _, err := m.Resolve("sys/block/sda"); err != nil {
		t.Error("the name is not free after the unmount")
	}
}

// TestFilesystemFaults: a person breaks a filesystem by device, place or drive.
func TestFilesystemFaults(t *testing.T) {
	m, _ := load(t, small)
	n := mounted(t, m, "ext4")
	fault := func(target, name string) {
		t.Helper()
		must(t, m.Inject(hostsim.Fault{Drive: target, Fault: name}))
	}
	fault("sda1", "fs-errors")
	fault(kubelet+"/stage/vol", "fs-read-only")
	if x := mountAt(t, m, kubelet+"/stage/vol"); read(t, m, "sys/fs/ext4/sda1/errors_count") != "1" || !strings.Contains(x.Opts, ",ro") {
		t.Errorf("the mount is %+v", x)
	}
	fault("HDD0", "fs-corrupt")
	if code := exitCode(t, m, "e2fsck", "-n", "-f", "/dev/sda1"); code != 4 {
		t.Errorf("e2fsck of a damaged filesystem ends with %d", code)
	}
	must(t, m.Inject(hostsim.Fault{Bay: "sda1", Fault: "fs-unmount"}))
	if mountAt(t, m, kubelet+"/stage/vol") != nil {
		t.Error("it is still mounted")
	}
	if code := exitCode(t, m, "e2fsck", "-y", "-f", "/dev/sda1"); code != 1 {
		t.Errorf("e2fsck -y ends with %d", code)
	}
	if code := exitCode(t, m, "e2fsck", "-n", "-f", "/dev/sda1"); code != 0 {
		t.Errorf("e2fsck after the repair ends with %d", code)
	}
	must(t, m.Mount(t.Context(), n))
	fault("/dev/sda1", "fs-corrupt")
	fault("/dev/sda1", "heal")
	if code := exitCode(t, m, "e2fsck", "-n", "-f", "/dev/sda1"); code != 0 {
		t.Errorf("e2fsck after heal ends with %d", code)
	}
	for _, target := range []string{"sdb", "/dev/sdb", "/nowhere", "7"} {
		if err := m.Inject(hostsim.Fault{Drive: target, Fault: "fs-corrupt"}); err == nil {
			t.Errorf("the filesystem of %s is damaged, it has none", target)
		}
	}
}

// TestPrograms: flags, refusals and exit statuses as of the real ones (e2fsprogs
// 1.47, xfsprogs 6.1, btrfs-progs 6.2, tried on a loop device).
func TestPrograms(t *testing.T) {
	m, _ := load(t, small)
	mounted(t, m, "ext4")
	held := openDisk(t, m, "/dev/sdb", true)
	for _, c := range []struct {
		argv string
		code int
		said string
	}{
		{"mkfs.ext4 -q -F /dev/sda1", 1, "in use by the system"},
		{"mkfs.ext4 -q -F /dev/sda", 1, "in use by the system"},
		{"mkfs.ext4 -q -F " + held.Path(), 1, "in use by the system"},
		{"mkfs.xfs -q -f /dev/sdb", 1, "resource busy"},
		{"mkfs.ext4 -q -Z /dev/sdc", 1, "invalid option -- 'Z'"},
		{"mkfs.ext4 -q -U 1 /dev/sdc", 1, "could not parse UUID"},
		{"mkfs.ext4 -q -E cheese /dev/sdc", 1, "Bad option"},
		{"mkfs.ext4 -q /dev/sdq", 1, "does not exist"},
		{"mkfs.xfs -q -L longer-than-twelve /dev/sdc", 1, "Invalid value"},
		{"mkfs.ext4 -q -L data -U " + someID + " /dev/sdc", 0, ""},
		{"mkfs.xfs -q /dev/sdc", 1, "existing filesystem (ext4)"},
		{"mkfs.btrfs -q /dev/sdc", 1, "use the -f option"},
		{"xfs_repair -n /dev/sdc", 1, "bad magic"},
		{"mkfs.xfs -q -f -K -m uuid=" + someID + " /dev/sdc", 0, ""},
		{"xfs_repair -n /dev/sdc", 0, ""},
		{"e2fsck -n -f /dev/sdc", 8, "Bad magic"},
		{"mkfs.btrfs --quiet --force --uuid " + someID + " --label data /dev/sdc", 0, ""},
		{"btrfs check --readonly /dev/sdc", 0, ""},
		{"btrfs check --readonly /dev/sda1", 1, "currently mounted"},
		{"btrfs balance /dev/sdc", 1, "unknown command"},
		{"fsck.ext4 -n", 16, "Usage"},
		{"e2fsck -y -f /dev/sda1", 8, "is mounted"},
	} {
		_, err := m.Run(t.Context(), strings.Fields(c.argv)...)
		exit, ok := errors.AsType[*host.ExitError](err)
		if ok != (c.code != 0) || ok && (exit.Code != c.code || !strings.Contains(exit.Stderr, c.said)) {
			t.Errorf("%s: %v, want status %d and %q", c.argv, err, c.code, c.said)
		}
	}
	inject(t, m, "4", "eio")
	if code := exitCode(t, m, "mkfs.ext4", "-q", "/dev/sdc"); code != 1 {
		t.Errorf("mkfs on a drive that fails ends with %d", code)
	}
	inject(t, m, "4", "heal")
	for kind, damaged := range map[string]string{"xfs": "xfs_repair -n", "btrfs": "btrfs check --readonly"} {
		if code := exitCode(t, m, "mkfs."+kind, "-f", "/dev/sdc"); code != 0 {
			t.Fatal(kind, code)
		}
		must(t, m.Inject(hostsim.Fault{Bay: "4", Fault: "fs-corrupt"}))
		if code := exitCode(t, m, append(strings.Fields(damaged), "/dev/sdc")...); code != 1 {
			t.Errorf("%s of a damaged filesystem ends with %d", damaged, code)
		}
	}
	lacking, _ := load(t, small+"without: [mkfs.xfs]")
	if _, err := lacking.Run(t.Context(), "mkfs.xfs", "/dev/sda"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not installed: %v", err)
	}
}
