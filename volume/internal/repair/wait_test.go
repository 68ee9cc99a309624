package repair

import (
	"testing"
	"time"
)

// TestLook is what a volume goes through: when it is healed, and when it waits.
func TestLook(t *testing.T) {
	const a, b = "mount the filesystem", "restore the bind mounts of pods"
	at := func(d time.Duration) time.Time { return time.Unix(1000000, 0).Add(d) }
	for name, c := range map[string]struct {
		is    autoRepair
		needs string
		at    time.Duration // after the last healing
		want  bool
		times int // that are remembered
	}{
		"sound":                {autoRepair{}, "", 0, false, 0},
		"seen once":            {autoRepair{}, a, 0, false, 0},
		"seen twice":           {autoRepair{needs: a}, a, 0, true, 0},
		"something else now":   {autoRepair{needs: a}, b, 0, false, 0},
		"sound again":          {autoRepair{needs: a}, "", 0, false, 0},
		"too early":            {autoRepair{needs: a, times: 1, last: at(0)}, a, 29 * time.Second, false, 1},
		"half a minute":        {autoRepair{needs: a, times: 1, last: at(0)}, a, 30 * time.Second, true, 1},
		"the third too early":  {autoRepair{needs: a, times: 2, last: at(0)}, a, 59 * time.Second, false, 2},
		"the third":            {autoRepair{needs: a, times: 2, last: at(0)}, a, time.Minute, true, 2},
		"the eighth too early": {autoRepair{needs: a, times: 8, last: at(0)}, a, time.Hour - 1, false, 8},
		"an hour at most":      {autoRepair{needs: a, times: 8, last: at(0)}, a, time.Hour, true, 8},
		"and no more":          {autoRepair{needs: a, times: 1 << 40, last: at(0)}, a, time.Hour, true, 1 << 40},
		"forgotten":            {autoRepair{times: 8, last: at(0)}, "", 4 * time.Hour, false, 0},
		"the first one again":  {autoRepair{needs: a, times: 8, last: at(0)}, a, 4 * time.Hour, true, 0},
	} {
		is := c.is
		if got := is.look(c.needs, at(c.at)); got != c.want || is.times != c.times || is.needs != c.needs {
			t.Errorf("%s: %v, then %+v", name, got, is)
		}
	}
}
