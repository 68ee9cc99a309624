package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// stats calls NodeGetVolumeStats for one volume over a new connection, as a kubelet does.
func (e endpoint) stats(v published) (abnormal bool, took time.Duration, err error) {
	took, err = e.timed(func(conn *grpc.ClientConn) (err error) {
		abnormal, err = askStats(conn, v)
		return err
	})
	return abnormal, took, err
}

// floor calls GetPluginInfo over a new connection: what gRPC and the load of the machine take without our work.
func (e endpoint) floor() (took time.Duration, err error) {
	return e.timed(func(conn *grpc.ClientConn) error {
		_, err := wire.NewIdentityClient(conn).GetPluginInfo(context.Background(), &wire.GetPluginInfoRequest{})
		return err
	})
}

// timed returns how long a call took, its connection included.
func (e endpoint) timed(call func(*grpc.ClientConn) error) (time.Duration, error) {
	began := time.Now()
	conn, err := e.dial()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	err = call(conn)
	return time.Since(began), err
}

func askStats(conn *grpc.ClientConn, v published) (abnormal bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := wire.NewNodeClient(conn).NodeGetVolumeStats(ctx, &wire.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.target, StagingTargetPath: v.staging})
	if err != nil {
		return false, err
	}
	if len(r.Usage) == 0 || r.Usage[0].Total == 0 {
		return false, fmt.Errorf("volume %s: no usage in %v", v.id, r)
	}
	// volume_condition is field 2, a message whose field 1 is "abnormal" (csi.proto 1.12).
	u := r.ProtoReflect().GetUnknown()
	return len(u) > 3 && u[0] == 2<<3|2 && (u[2] == 1<<3 || u[1] >= 0x80 && u[3] == 1<<3), nil
}

// pace makes n calls of stats for the volumes in turn, atOnce at a time.
func (e endpoint) pace(all []published, n, atOnce int) ([]time.Duration, error) {
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				_, d, err := e.stats(all[int(i)%len(all)])
				mu.Lock()
				took = append(took, d)
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return took, failed
}

// statsRows measures NodeGetVolumeStats on a node with 125 to 1000 volumes.
func statsRows() (rows []row, err error) {
	n, err := newNode(0, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := n.close(); err == nil {
			err = closed
		}
	}()
	var all []published
	var made, took []time.Duration
	costs := map[int]time.Duration{}
	for _, count := range []int{125, 250, 500, 1000} {
		var more []time.Duration
		if all, more, err = n.fill(all, count); err != nil {
			return rows, err
		}
		made = append(made, more...)
		if _, err = n.pace(all, 500, 1); err != nil { // warm
			return rows, err
		}
		if took, err = n.pace(all, 3000, 1); err != nil {
			return rows, err
		}
		costs[count] = percentile(took, 50)
		if count == 500 {
			n.rest(5 * time.Second)
			busy, err := n.busy(all)
			if rows = append(rows, busy...); err != nil {
				return rows, err
			}
		}
	}
	slope := logSlope(costs)
	p50 := percentile(made, 50)
	return append(rows,
		row{"NodeGetVolumeStats from 125 to 1000 volumes, one at a time, p50s", "slope <= 0.1", fmt.Sprintf("%s %s %s %s: %.2f", ms2(costs[125]), ms2(costs[250]), ms2(costs[500]), ms2(costs[1000]), slope), slope <= 0.1},
		row{"create, stage and publish, simulated, p50 / p99 of 1000", "-", ms(p50) + " / " + ms(percentile(made, 99)), true},
	), nil
}

// logSlope returns the exponent b that fits cost = a * n^b best.
func logSlope(costs map[int]time.Duration) float64 {
	var n, x, y, xx, xy float64
	for count, cost := range costs {
		lx, ly := math.Log(float64(count)), math.Log(float64(cost))
		n, x, y, xx, xy = n+1, x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// ms2 formats durations around a millisecond.
func ms2(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// busy measures many callers at once, and then calls while a drive hangs.
func (n *node) busy(all []published) ([]row, error) {
	const calls = 8000
	rows, err := n.pacedRows("NodeGetVolumeStats, 500 volumes, 1000 mounts, a connection each, 1000/s, up to 16 in flight", all, calls)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	took, err := n.pace(all, calls, 16)
	if err != nil {
		return nil, err
	}
	rate := calls / time.Since(began).Seconds()
	rows = append(rows, row{"the same, 16 in flight all the time: gRPC of the callers takes the cores", "-", fmt.Sprintf("%s / %s, %.0f/s", ms2(percentile(took, 50)), ms2(percentile(took, 99)), rate), true})
	hung, err := n.hung(all)
	return append(rows, hung...), err
}

// withinBudget judges how long NodeGetVolumeStats takes by the clock of a kubelet. On a machine with other load an empty
// call of an empty server alone can take more than the budget (5 to 34 ms, p99 of 8000, seen): ours may take little more then.
func withinBudget(p50, p99, floor50, floor99 time.Duration) bool {
	return p50 <= max(700*time.Microsecond, floor50*14/10) && p99 <= max(5*time.Millisecond, 2*floor99)
}

// pacedRows measures NodeGetVolumeStats by the clock of a kubelet, and a call without our work at every other tick of it:
// the load of the machine changes from second to second, and both have the same.
func (e endpoint) pacedRows(what string, all []published, calls int) ([]row, error) {
	var mu sync.Mutex
	var took, floor []time.Duration
	if _, err := paced(2*calls, time.Millisecond, 16, func(i int) (d time.Duration, err error) {
		into := &took
		if i%2 == 0 {
			_, d, err = e.stats(all[i/2%len(all)])
		} else {
			into = &floor
			d, err = e.floor()
		}
		mu.Lock()
		defer mu.Unlock()
		*into = append(*into, d)
		return d, err
	}); err != nil {
		return nil, err
	}
	p50, p99, floor50, floor99 := percentile(took, 50), percentile(took, 99), percentile(floor, 50), percentile(floor, 99)
	return []row{
		{what + ", p50 / p99", "<= 0.7 / 5 ms, or 1.4 / 2 x the next", ms2(p50) + " / " + ms2(p99), withinBudget(p50, p99, floor50, floor99)},
		{"GetPluginInfo in turn with it: what gRPC, the callers and the load of the machine take", "-", ms2(floor50) + " / " + ms2(floor99), true},
	}, nil
}

// paced starts a call at every interval, even if those before have not ended: a kubelet
// calls by the clock. No more than atOnce are in flight.
func paced(n int, every time.Duration, atOnce int, call func(i int) (time.Duration, error)) (took []time.Duration, failed error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	began := time.Now()
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
		slots <- struct{}{}
		wg.Go(func() {
			d, err := call(i)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return took, failed
}

// costRows counts the accesses that calls cause on a machine that nothing else reads.
func costRows() (rows []row, err error) {
	n, err := newNode(0, time.Hour)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := n.close(); err == nil {
			err = closed
		}
	}()
	all, _, err := n.fill(nil, 50)
	if err != nil {
		return nil, err
	}
	n.rest(time.Second)
	const calls = 5000
	before := n.asked()
	if _, err := n.pace(all, calls, 16); err != nil {
		return nil, err
	}
	after := n.asked()
	return []row{{fmt.Sprintf("programs run and drives touched by %d NodeGetVolumeStats", calls), "0, 0",
		fmt.Sprintf("%d, %d", after.runs-before.runs, after.touches-before.touches), after == before}}, nil
}

// rest returns once nothing was read for so long: drives are read again after volumes were made on them.
func (n *node) rest(quiet time.Duration) {
	for last := (asked{runs: -1}); last != n.asked(); time.Sleep(quiet) {
		last = n.asked()
	}
}

// asked counts the programs that were run and the accesses to drives on the machine so
// far.
type asked struct{ runs, touches int }

func (n *node) asked() (a asked) {
	s := n.sim.Stats()
	a.runs = s.Runs
	for _, d := range s.Drives {
		a.touches += d.Opens + d.Pages + d.Reads + d.Writes
	}
	return a
}
