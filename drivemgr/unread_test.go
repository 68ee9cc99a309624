package drivemgr_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestFindingOfUnreadPage: what a page of a drive has shown stands while that page cannot be read, though
// the drive answers all others. It ends, in its time, when the page is read and does not show it any more.
func TestFindingOfUnreadPage(t *testing.T) {
	eio := errors.New("input/output error")
	kinds := map[drivebay.Protocol]hostsim.Kind{drivebay.ProtocolATA: hostsim.KindSATAHDD, drivebay.ProtocolSCSI: hostsim.KindSASHDD, drivebay.ProtocolNVMe: hostsim.KindNVMe}
	for name, c := range map[string]struct {
		protocol drivebay.Protocol
		fault    string
		args     []string
		fail     []host.Page
		by       error
	}{
		"grown defects":          {drivebay.ProtocolSCSI, "reallocate", []string{"n=5000"}, []host.Page{host.SCSIGrownDefects}, eio},
		"self-tests of SAS":      {drivebay.ProtocolSCSI, "selftest-fail", []string{"count=2"}, []host.Page{host.SCSILogSelfTest}, eio},
		"prediction of SAS":      {drivebay.ProtocolSCSI, "fail", nil, []host.Page{host.SCSILogIE}, eio},
		"self-tests of ATA":      {drivebay.ProtocolATA, "selftest-fail", []string{"count=2"}, []host.Page{host.ATASelfTestLog, host.ATAExtSelfTestLog}, eio},
		"self-tests, aborted":    {drivebay.ProtocolATA, "selftest-fail", []string{"count=2"}, []host.Page{host.ATASelfTestLog, host.ATAExtSelfTestLog}, host.ErrUnsupported},
		"verdict of ATA":         {drivebay.ProtocolATA, "fail", nil, []host.Page{host.ATASmartStatus}, eio},
		"thresholds":             {drivebay.ProtocolATA, "reallocate", []string{"n=5000"}, []host.Page{host.ATASmartThresholds}, eio},
		"self-tests of NVMe":     {drivebay.ProtocolNVMe, "selftest-fail", []string{"count=2"}, []host.Page{host.NVMeSelfTestLog}, eio},
		"what NVMe can, unknown": {drivebay.ProtocolNVMe, "selftest-fail", []string{"count=2"}, []host.Page{host.NVMeIdentifyController}, eio},
	} {
		t.Run(name, func(t *testing.T) {
			m, opt := &pagesThrough{}, drivemgr.DefaultOptions()
			opt.Tick = time.Minute
			spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: kinds[c.protocol], Serial: "IT"}}}
			onSeen(t, spec, nil, opt, func(sim *hostsim.Machine) host.Machine {
				m.Machine = sim
				return m
			}, func(r *rig) {
				d := &r.mgr.Snapshot().Drives[0]
				r.inject("IT", c.fault, c.args...)
				time.Sleep(30 * time.Minute)
				before := r.drive(d.ID)
				if before.Health != drivebay.HealthBad {
					r.Fatalf("before: %v %+v", before.Health, before.Findings)
				}
				m.change.Store(new(pageChange(func(p host.Page, b []byte, err error) ([]byte, error) {
					if slices.Contains(c.fail, p) {
						return nil, fmt.Errorf("%s: %w", p, c.by)
					}
					return b, err
				})))
				time.Sleep(26 * time.Hour)
				is := r.drive(d.ID)
				if is.Health != drivebay.HealthBad || len(is.Findings) != len(before.Findings) || is.Findings[0].Code != before.Findings[0].Code {
					r.Errorf("a day without the page: %v %+v", is.Health, is.Findings)
				}
				m.change.Store(nil)
				r.inject("IT", "heal")
				time.Sleep(26 * time.Hour)
				if is := r.drive(d.ID); is.Health != drivebay.HealthGood && c.fault != "reallocate" { // that has grown within the week
					r.Errorf("healed and read: %v %+v", is.Health, is.Findings)
				}
			})
		})
	}
}
