package hostsim

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/drbd/drbdtest"
	"github.com/drivebay/drivebay/internal/host"
)

// drbdSite is a simulated machine whose first drive is the disk.
type drbdSite struct {
	api.Kernel
	m     *Machine
	log   <-chan host.LogLine
	lines []string
}

func newDRBDSite(t *testing.T) *drbdSite {
	m, err := New(Spec{Drives: []Group{{Count: 1, Kind: KindNVMe, Serial: "DISK", Size: "128MiB"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.DRBD(); err == nil {
		t.Error("DRBD without its module")
	}
	s := &drbdSite{m: m}
	if _, err = m.Run(t.Context(), "modprobe", "drbd", "usermode_helper=/bin/true"); err == nil {
		s.Kernel, err = m.DRBD()
	}
	if err == nil {
		s.log, err = m.KernelLog(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *drbdSite) Disk() string { return "/dev/nvme0n1" }

func (s *drbdSite) Run(ctx context.Context, argv []string) error {
	if _, err := s.m.Run(ctx, "rm", "-f", api.LastKnown(drbdtest.Minor)); err != nil {
		return err
	}
	_, err := s.m.Run(ctx, argv...)
	return err
}

func (s *drbdSite) Write(ctx context.Context, at int64, b []byte) error {
	disk, err := s.m.OpenDisk(ctx, fmt.Sprintf("/dev/drbd%d", drbdtest.Minor), false)
	if err != nil {
		return err
	}
	defer disk.Close()
	_, err = disk.WriteAt(b, at)
	return err
}

func (s *drbdSite) Read(ctx context.Context, at int64, n int) ([]byte, error) {
	disk, err := s.m.OpenDisk(ctx, s.Disk(), false)
	if err != nil {
		return nil, err
	}
	defer disk.Close()
	b := make([]byte, n)
	_, err = disk.ReadMedium(b, at)
	return b, err
}

func (s *drbdSite) Log(context.Context) ([]string, error) {
	for {
		select {
		case l := <-s.log:
			s.lines = append(s.lines, l.Text)
		default:
			return s.lines, nil
		}
	}
}

// TestDRBD runs the cases that the kernel of the lab runs (TestLabDRBDCases).
func TestDRBD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newDRBDSite(t), newDRBDSite(t)
		defer a.m.Close()
		defer b.m.Close()
		network := Join(a.m, b.m)
		drbdtest.Run(t, a, b, [2]netip.AddrPort{netip.MustParseAddrPort("10.77.0.1:7789"), netip.MustParseAddrPort("10.77.0.2:7789")}, network)
	})
}
