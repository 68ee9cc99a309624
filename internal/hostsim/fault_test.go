package hostsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestEveryFault injects each fault with its usual arguments into a drive that
// can have it, sees that the drive is listed as faulty, and heals it.
func TestEveryFault(t *testing.T) {
	only := map[string]string{"critical-warning": "0", "nvme-dead": "0", "wear": "3"}
	args := map[string]string{"move": "to=6", "duplicate-serial": "of=3", "swap": "with=3", "replace": "serial=SHELF1 size=20TB"}
	silent := map[string]bool{"move": true, "swap": true, "overflow": true, "return": true, "heal": true, "fs-fill": true, "fs-unmount": true, "selftest-selective": true}
	for _, doc := range hostsim.FaultNames() {
		t.Run(doc.Name, func(t *testing.T) {
			m, _ := load(t, small)
			if strings.HasPrefix(doc.Name, "fs-") {
				mounted(t, m, "ext4")
			}
			before := view(m)
			bay := only[doc.Name]
			if bay == "" {
				bay = "2"
			}
			if doc.Name == "return" {
				inject(t, m, bay, "vanish")
			}
			inject(t, m, bay, doc.Name, strings.Fields(args[doc.Name])...)
			faulty := 0
			for _, d := range m.View() {
				faulty += len(d.Faults)
			}
			if (faulty > 0) == silent[doc.Name] {
				t.Errorf("%d faults are listed: %v", faulty, m.View())
			}
			if doc.Name == "move" {
				inject(t, m, "6", "move", "to=2")
			}
			if doc.Name == "swap" {
				inject(t, m, "3", "swap", "with=2")
			}
			if doc.Name == "replace" { // what is on the shelf then stays there
				i := slices.IndexFunc(m.View(), func(d hostsim.DriveView) bool { return d.Serial == "SHELF1" && d.Bay == "2" && d.Size > 19e12 })
				if i < 0 {
					t.Errorf("bay 2 holds another drive: %v", m.View())
				}
				return
			}
			inject(t, m, bay, "heal")
			if after := view(m); after != before {
				t.Errorf("after heal:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// view is the list of drives without the counters.
func view(m *hostsim.Machine) string {
	list := m.View()
	for i := range list {
		list[i].Stats = hostsim.DriveStats{}
	}
	b, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// next waits for a message that fits.
func next[T any](t *testing.T, ch <-chan T, what string, fits func(T) bool) T {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case msg := <-ch:
			if fits(msg) {
				return msg
			}
		case <-late:
			t.Fatalf("no %s", what)
		}
	}
}

func TestVanishAndReturn(t *testing.T) {
	m, _ := load(t, small)
	events, err := m.Uevents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	disk := func(action string) func(host.Uevent) bool {
		return func(e host.Uevent) bool { return e.Action == action && e.Subsystem == "block" }
	}
	d := open(t, m, "/dev/sda")
	inject(t, m, "2", "vanish")
	if e := next(t, events, "remove", disk("remove")); e.DevName != "sda" || !strings.HasPrefix(e.DevPath, "/devices/pci") {
		t.Errorf("uevent %+v", e)
	}
	if _, err := m.Resolve("sys/block/sda"); err == nil {
		t.Error("sda is still there")
	}
	if got := read(t, m, "sys/class/enclosure/0:0:200:0/Slot 02/status"); got != "not installed" {
		t.Errorf("the bay is %q", got)
	}
	if _, err := d.Page(t.Context(), host.ATAIdentify); !errors.Is(err, host.ErrGone) {
		t.Errorf("a page of a pulled drive: %v", err)
	}
	inject(t, m, "2", "return", "rename=true")
	e := next(t, events, "add", disk("add"))
	if e.DevName == "sda" || read(t, m, "sys/block/"+e.DevName+"/device/model") == "" {
		t.Errorf("it came back as %s", e.DevName)
	}
	if _, err := d.ReadAt(make([]byte, 512), 0); !errors.Is(err, host.ErrGone) {
		t.Errorf("an old handle reads the returned drive: %v", err)
	}
	if err := m.Inject(hostsim.Fault{Bay: "2", Fault: "return"}); err == nil {
		t.Error("a drive returned twice")
	}
}

// TestNothingStays: a vanished drive leaves no name behind anywhere.
func TestNothingStays(t *testing.T) {
	m, _ := load(t, small)
	before := map[string]int{}
	folders := []string{"sys/block", "sys/class/block", "sys/class/scsi_device", "sys/class/scsi_generic", "sys/class/nvme", "sys/class/nvme-subsystem", "sys/dev/block", "run/udev/data", "sys/bus/pci/devices"}
	for _, f := range folders {
		names, _ := m.ReadDir(f)
		before[f] = len(names)
	}
	at, _ := m.Resolve("sys/block/sda")
	for range 3 {
		inject(t, m, "0", "vanish")
		inject(t, m, "2", "vanish")
		if _, err := m.ReadDir(at); err == nil {
			t.Fatalf("%s is still there", at)
		}
		for _, f := range folders {
			names, err := m.ReadDir(f)
			if err != nil || len(names) >= before[f] {
				t.Errorf("%s has %v, %v; %d before", f, names, err, before[f])
			}
		}
		inject(t, m, "0", "return")
		inject(t, m, "2", "return")
	}
	for _, f := range folders {
		if names, _ := m.ReadDir(f); len(names) != before[f] {
			t.Errorf("%s has %v, %d before", f, names, before[f])
		}
	}
}

// TestHang: a hanging drive heeds no context, others answer, healing ends it.
func TestHang(t *testing.T) {
	m, _ := load(t, small)
	d := open(t, m, "/dev/sda")
	inject(t, m, "2", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := d.Page(ctx, host.ATAIdentify)
		done <- err
	}()
	for strings.Fields(read(t, m, "sys/block/sda/inflight"))[0] != "3" { // two of others, and ours
		time.Sleep(time.Millisecond)
	}
	cancel()
	if _, err := open(t, m, "/dev/sdb").Page(t.Context(), host.ATAIdentify); err != nil {
		t.Errorf("another drive: %v", err)
	}
	stat := read(t, m, "sys/block/sda/stat")
	select {
	case err := <-done:
		t.Fatalf("a hanging drive answered %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if again := read(t, m, "sys/block/sda/stat"); again != stat {
		t.Errorf("requests come back: %q, %q", stat, again)
	}
	inject(t, m, "2", "heal")
	next(t, done, "answer", func(error) bool { return true })
}

func TestStandbyIsCounted(t *testing.T) {
	m, _ := load(t, small)
	wakeups := func(i int) int { return m.Stats().Drives[i].Wakeups }
	ata, sas := open(t, m, "/dev/sda"), open(t, m, "/dev/sdc")
	inject(t, m, "2", "standby")
	inject(t, m, "4", "standby")
	if b, err := ata.Page(t.Context(), host.ATAPowerMode); err != nil || !bytes.Equal(b, []byte{0}) {
		t.Errorf("power mode % x, %v", b, err)
	}
	if _, err := sas.Page(t.Context(), host.SCSITestUnitReady); !errors.Is(err, host.ErrStandby) {
		t.Errorf("test unit ready: %v", err)
	}
	if wakeups(1)+wakeups(3) != 0 {
		t.Error("asking for the power mode woke a drive")
	}
	if _, err := ata.Page(t.Context(), host.ATASmartData); err != nil {
		t.Error(err)
	}
	if _, err := sas.ReadAt(make([]byte, 512), 0); err != nil {
		t.Error(err)
	}
	if wakeups(1) != 1 || wakeups(3) != 1 {
		t.Errorf("%d and %d wake-ups were counted", wakeups(1), wakeups(3))
	}
	if b, _ := ata.Page(t.Context(), host.ATAPowerMode); !bytes.Equal(b, []byte{0xFF}) {
		t.Errorf("power mode % x after it was woken", b)
	}
}

func TestKernelSays(t *testing.T) {
	for _, k := range []struct{ bay, fault, line string }{
		{"2", "eio", "I/O error, dev sda, sector 2048"},
		{"2", "pending", "critical medium error, dev sda, sector 4660"},
		{"0", "media-errors", "critical medium error, dev nvme0n1, sector 4660"},
		{"4", "offline", "sd 0:0:4:0: Device offlined"},
		{"0", "nvme-dead", "nvme nvme0: Device not ready"},
		{"2", "vanish", "Synchronizing SCSI cache"},
	} {
		t.Run(k.fault, func(t *testing.T) {
			m, _ := load(t, small)
			lines, err := m.KernelLog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			inject(t, m, k.bay, k.fault)
			next(t, lines, k.line, func(l host.LogLine) bool { return strings.Contains(l.Text, k.line) && l.At.Equal(start) })
		})
	}
}

func TestRefusals(t *testing.T) {
	m, _ := load(t, small)
	inject(t, m, "2", "permission")
	inject(t, m, "4", "offline")
	for dev, want := range map[string]error{"/dev/sda": host.ErrPermission, "/dev/sdc": host.ErrGone, "/dev/sdx": host.ErrGone} {
		if _, err := m.OpenDrive(t.Context(), dev); !errors.Is(err, want) {
			t.Errorf("open %s: %v, want %v", dev, err, want)
		}
	}
	before := read(t, m, "sys/block/sdb/device/ioerr_cnt")
	d := open(t, m, "/dev/sdb")
	inject(t, m, "3", "eio")
	if _, err := d.Page(t.Context(), host.ATAIdentify); err == nil {
		t.Error("a failing drive answered")
	}
	if after := read(t, m, "sys/block/sdb/device/ioerr_cnt"); after == before {
		t.Errorf("ioerr_cnt stays %s", after)
	}
	slow, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	d = open(t, m, "/dev/sdd")
	inject(t, m, "5", "slow", "delay=1h")
	if _, err := d.Page(slow, host.SCSIInquiry); !errors.Is(err, host.ErrTimeout) {
		t.Errorf("a slow drive: %v", err)
	}
}

func TestOverflow(t *testing.T) {
	m, _ := load(t, small)
	events, err := m.Uevents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Nobody reads meanwhile. One backlog may be on its way to the reader already,
	// one may be waiting; what comes then is too much.
	for range 6000 {
		inject(t, m, "0", "nvme-dead")
	}
	next(t, events, "overflow", func(e host.Uevent) bool { return e.Overflow })
	inject(t, m, "0", "overflow")
	next(t, events, "overflow", func(e host.Uevent) bool { return e.Overflow })
}

func TestHandler(t *testing.T) {
	m, _ := load(t, small)
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	for _, k := range []struct{ body, want string }{
		{`{"bay":"2","fault":"reallocate","args":{"n":50}}`, ""},
		{`{"bay":"Slot 03","fault":"wear","args":{"percent":"99"}}`, ""},
		{`{"bay":"disks/4","fault":"vanish"}`, ""},
		{`{"drive":"VIRT0","fault":"slow"}`, ""},
		{`{"bay":"2","fault":"explode"}`, `\"explode\"`},
		{`{"bay":"7","fault":"vanish"}`, "no drive is or was in bay"},
		{`{"fault":"vanish"}`, "give either a bay or a drive"},
		{`{"bay":"2","fault":"wear"}`, "does not wear"},
		{`{"bay":"4","fault":"hang"}`, "is not in the machine"},
		{`{"bay":"2","fault":"heat","args":{"celsius":"hot"}}`, "celsius=hot"},
		{`{"bay":"2","fault":"heat","args":{"kelvin":"300"}}`, `\"kelvin\"`},
		{`{"bay":"2","fault":"move","args":{"to":"5"}}`, "there is a drive in it already"},
		{`{"bay":"2","fault":"move","args":{"to":"1"}}`, "no bay of that name takes"},
		{`{"bay":"2","fault":"bad-checksum","speed":1}`, "unknown field"},
		{`{"bay":"0","fault":"standby"}`, "has no standby"},
		{`{"bay":"2","fault":"duplicate-serial"}`, "give either"},
	} {
		r, err := http.Post(server.URL+"/sim/v1/faults", "application/json", strings.NewReader(k.body))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(r.Body); err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if (r.StatusCode == http.StatusOK) != (k.want == "") || !strings.Contains(text.String(), k.want) {
			t.Errorf("%s: %d %s", k.body, r.StatusCode, text.String())
		}
	}
	r, err := http.Get(server.URL + "/sim/v1/drives")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var list []hostsim.DriveView
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil || len(list) != 7 {
		t.Errorf("%d drives, %v", len(list), err)
	}
}
