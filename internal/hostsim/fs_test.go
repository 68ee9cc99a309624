package hostsim_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

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
		"a link":                 {try(func(n *host.NewMount) { n.At = at("link") }), host.ErrOutsideRoot},
		"below a link":           {try(func(n *host.NewMount) { n.At = at("link/x") }), host.ErrOutsideRoot},
		"out of the root":        {try(func(n *host.NewMount) { n.At = at("../x") }), host.ErrOutsideRoot},
		"another filesystem":     {try(func(n *host.NewMount) { n.FS = "xfs" }), errAny},
		"an unknown one":         {try(func(n *host.NewMount) { n.FS = "zfs" }), host.ErrImpossible},
		"an unknown option":      {try(func(n *host.NewMount) { n.Options = []string{"cheese"} }), errAny},
		"no device":              {try(func(n *host.NewMount) { n.Device = "/dev/sdq" }), host.ErrGone},
		"a blank drive":          {try(func(n *host.NewMount) { n.Device = "/dev/sdb" }), errAny},
		"read-only beside rw":    {try(func(n *host.NewMount) { n.ReadOnly = true }), host.ErrBusy},
		"remove what is mounted": {m.Remove(n.At), host.ErrBusy},
		"remove what is full":    {m.Remove(at("stage")), errAny},
		"remove a link":          {m.Remove(at("link")), host.ErrOutsideRoot},
		"a folder at a file":     {m.MakeFolder(at("file")), errAny},
		"a folder below a file":  {m.MakeFolder(at("file/x")), errAny},
		"a folder below a link":  {m.MakeFolder(at("link/x")), host.ErrOutsideRoot},
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
