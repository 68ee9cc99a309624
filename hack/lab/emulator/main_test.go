package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/emul"
	"github.com/drivebay/drivebay/hack/lab/emul/tcmu"
)

const twoDevices = `{"disks":[{"name":"d1","serial":"S1","model":"M","wwn":5764607523034234881,"size":1048576}],
	"enclosures":[{"name":"e1","logicalId":1,"slots":[{"name":"Slot 01"}]}]}`

func testUnits(t *testing.T) []*emul.Unit {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec")
	if err := os.WriteFile(file, []byte(twoDevices), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := readSpec(file)
	if err != nil {
		t.Fatal(err)
	}
	units, err := emul.Units(spec)
	if err != nil {
		t.Fatal(err)
	}
	return units
}

// Client and control interface over a real socket; the devices are ones that no
// kernel knows.
func TestControl(t *testing.T) {
	var devices []*tcmu.Device
	for _, u := range testUnits(t) {
		devices = append(devices, &tcmu.Device{Unit: u})
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- serve(ctx, l, handler(devices)) }()
	c := emul.Client{HTTP: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}}

	all, err := c.Devices(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "d1" || all[0].Disk.Power != emul.Active || all[1].Shelf == nil {
		t.Errorf("%+v, %v", all, err)
	}
	failed, bad := true, []uint64{5}
	s, err := c.Change(ctx, "d1", emul.Change{Failed: &failed, ReadErrors: &bad})
	if err != nil || !s.Disk.Failed || !reflect.DeepEqual(s.Disk.ReadErrors, bad) {
		t.Errorf("%+v, %v", s, err)
	}
	devices[0].Unit.Arrived(make([]byte, 6))
	if s, err = c.Device(ctx, "d1"); err != nil || s.Counts.By["scsi 00"] != 1 {
		t.Errorf("%+v, %v", s.Counts, err)
	}
	if s, err = c.ResetCounts(ctx, "d1"); err != nil || s.Counts.Total != 0 {
		t.Errorf("%+v, %v", s.Counts, err)
	}
	beyond := []uint64{1 << 40}
	if _, err = c.Change(ctx, "d1", emul.Change{ReadErrors: &beyond}); err == nil || !strings.Contains(err.Error(), "beyond the end") {
		t.Error(err)
	}
	if _, err = c.Device(ctx, "d2"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

func TestReadSpec(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spec")
	for _, text := range []string{`{"disk":[]}`, `{"disks":[{"nmae":"x"}]}`, `[]`, ``} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := readSpec(file); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func TestPlaces(t *testing.T) {
	units := []*emul.Unit{{Name: "a"}, {Name: "b", Host: "x"}, {Name: "c"}, {Name: "d", Host: "x"}, {Name: "e", Host: "y"}}
	want := []place{{0, 1}, {1, 1}, {2, 1}, {1, 2}, {3, 1}}
	if got := places(units); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}
