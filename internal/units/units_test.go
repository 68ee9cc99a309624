package units_test

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/units"
)

func TestOfOneDevice(t *testing.T) {
	scsi := func(serial string, at ...string) drivebay.Drive {
		d := drivebay.Drive{Identity: drivebay.Identity{Serial: serial}, Transport: drivebay.TransportSAS}
		for _, a := range at {
			d.Paths = append(d.Paths, drivebay.Path{Address: a})
		}
		return d
	}
	nvme := func(at ...string) drivebay.Drive {
		d := scsi("S1", at...)
		d.Transport = drivebay.TransportNVMe
		return d
	}
	for name, c := range map[string]struct {
		a, b drivebay.Drive
		same bool
	}{
		"two actuators":                   {scsi("S1", "0:0:1:0"), scsi("S1", "0:0:1:1"), true},
		"two actuators, by another path":  {scsi("S1", "0:0:1:0", "1:0:4:0"), scsi("S1", "1:0:4:1"), true},
		"two disks of a virtual target":   {scsi("S1", "0:0:1:0"), scsi("S2", "0:0:1:1"), false},
		"no serial":                       {scsi("", "0:0:1:0"), scsi("", "0:0:1:1"), false},
		"two targets":                     {scsi("S1", "0:0:1:0"), scsi("S1", "0:0:11:0"), false},
		"two namespaces":                  {nvme("0000:01:00.0"), nvme("0000:01:00.0"), true},
		"two SSDs":                        {nvme("0000:01:00.0"), nvme("0000:02:00.0"), false},
		"no address":                      {nvme(""), nvme(""), false},
		"no path":                         {nvme(), nvme("0000:01:00.0"), false},
		"a SCSI disk at no target of its": {scsi("S1", "0000:01:00.0"), scsi("S1", "0000:01:00.0"), false},
	} {
		if is := units.OfOneDevice(&c.a, &c.b); is != c.same {
			t.Errorf("%s: %v", name, is)
		}
	}
}
