package main

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestUnhealed: a healing fails if a finding remains, also after a repair of something else: the same command right after it
// would. Only what ends by itself after the repair is excused.
func TestUnhealed(t *testing.T) {
	v := &drivebay.Volume{ID: "v", Name: "v"}
	degraded := func(reason string) drivebay.VolumeFinding {
		return drivebay.VolumeFinding{Severity: drivebay.SeverityDegraded, Reason: reason, Message: "x"}
	}
	syncing, failing := degraded("MirrorOutOfSync"), degraded("DiskFailure")
	lost := syncing
	lost.Severity = drivebay.SeverityInaccessible
	done, failed := drivebay.HealStep{Repair: "restore the bind mounts of pods", Done: "y"}, drivebay.HealStep{Repair: "run fsck", Failed: "z"}
	for name, c := range map[string]struct {
		steps []drivebay.HealStep
		left  drivebay.Condition
		fails bool
	}{
		"nothing to do":             {nil, nil, false},
		"repaired":                  {[]drivebay.HealStep{done}, nil, false},
		"one repair failed":         {[]drivebay.HealStep{done, failed}, nil, true},
		"no repair applies":         {nil, drivebay.Condition{failing}, true},
		"another fault remains":     {[]drivebay.HealStep{done}, drivebay.Condition{failing}, true},
		"errors remain":             {[]drivebay.HealStep{done}, drivebay.Condition{degraded("FilesystemCorruption")}, true},
		"it resyncs":                {[]drivebay.HealStep{done}, drivebay.Condition{syncing}, false},
		"a replication resyncs":     {[]drivebay.HealStep{done}, drivebay.Condition{degraded("ReplicationDegraded")}, false},
		"it resyncs, and a fault":   {[]drivebay.HealStep{done}, drivebay.Condition{syncing, failing}, true},
		"not in sync, no repair":    {nil, drivebay.Condition{syncing}, true},
		"not in sync, inaccessible": {[]drivebay.HealStep{done}, drivebay.Condition{lost}, true},
	} {
		report := drivebay.HealReport{Volume: "v", Steps: c.steps, Remaining: c.left}
		if err := unhealed(v, report); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
