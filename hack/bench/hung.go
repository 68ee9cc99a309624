package main

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim"
)

// hung measures calls while the drive of the first volume hangs.
func (n *node) hung(all []published) (rows []row, err error) {
	v, _ := n.engine.Volumes().Get(all[0].id)
	drive := v.Location.Drives[0]
	var sick, well []published
	for _, p := range all {
		if v, ok := n.engine.Volumes().Get(p.id); ok && v.Location.Drives[0] == drive {
			sick = append(sick, p)
		} else {
			well = append(well, p)
		}
	}
	before, err := n.pace(well, 3000, 1)
	if err != nil {
		return nil, err
	}
	d, _ := n.drives.Snapshot().Find(drive)
	if err := n.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "hang"}); err != nil {
		return nil, err
	}
	go n.use(all[0])
	seen, slowest, err := n.untilAbnormal(all[0])
	if err != nil {
		return nil, err
	}
	during, err := n.pace(well, 3000, 1)
	if err != nil {
		return nil, err
	}
	ill, err := n.pace(sick, 500, 1)
	if err != nil {
		return nil, err
	}
	if err := n.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "heal"}); err != nil {
		return nil, err
	}
	after, err := n.pace(well, 3000, 1) // the load of other processes varies
	ratio := 2 * float64(percentile(during, 50)) / float64(percentile(before, 50)+percentile(after, 50))
	return []row{
		{"a drive hangs: abnormal in NodeGetVolumeStats", "<= 10 s", ms(seen), seen <= 10*time.Second},
		{"slowest answer until then", "<= 1 s", ms(slowest), slowest <= time.Second},
		{"a volume on it after that, p50 / p99", "p99 <= 5 ms, or that of the others", ms2(percentile(ill, 50)) + " / " + ms2(percentile(ill, 99)),
			percentile(ill, 99) <= max(5*time.Millisecond, percentile(during, 99))},
		{"the other volumes meanwhile, p50 to the p50s before and after", "<= 1.2", fmt.Sprintf("%.2f", ratio), ratio <= 1.2},
	}, err
}

func (e endpoint) untilAbnormal(v published) (seen, slowest time.Duration, err error) {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(5 * time.Millisecond) {
		abnormal, took, err := e.stats(v)
		if err != nil {
			return 0, 0, err
		}
		slowest = max(slowest, took)
		if abnormal {
			return time.Since(began), slowest, nil
		}
	}
	return 0, slowest, fmt.Errorf("volume %s is normal on a drive that hangs", v.id)
}
