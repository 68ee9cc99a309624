package main

import (
	"context"
	"fmt"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// listRows measures ListVolumes with very many volumes, all of them abnormal.
func listRows() (rows []row, err error) {
	gets := map[int]time.Duration{}
	for _, count := range []int{1000, 100_000} {
		more, get, err := listsOf(count)
		if err != nil {
			return rows, err
		}
		gets[count] = get
		if count == 100_000 {
			rows = more
		}
	}
	few, many := gets[1000], gets[100_000]
	return append(rows, row{"ControllerGetVolume, of 1000 and of 100,000, p50", "<= 2 ms, flat", ms2(few) + ", " + ms2(many),
		max(few, many) <= 2*time.Millisecond && many <= 2*few}), nil
}

func listsOf(count int) (rows []row, get time.Duration, err error) {
	n, err := newNode(count, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if closed := n.close(); err == nil {
			err = closed
		}
	}()
	conn, err := n.dial()
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	client := wire.NewControllerClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var walks, pages, gets, capacities []time.Duration
	var ids []string
	for range 5 {
		began := time.Now()
		some, took, err := walk(ctx, client, 1000)
		if err != nil {
			return nil, 0, err
		}
		walks, pages, ids = append(walks, time.Since(began)), append(pages, took...), some
	}
	if len(ids) != count {
		return nil, 0, fmt.Errorf("%d volumes are listed, and there are %d", len(ids), count)
	}
	whole, err := client.ListVolumes(ctx, &wire.ListVolumesRequest{}, grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		return nil, 0, err
	}
	for i := range 2000 {
		took, err := timed(func() error {
			_, err := client.ControllerGetVolume(ctx, &wire.ControllerGetVolumeRequest{VolumeId: ids[i*7919%count]})
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		gets = append(gets, took)
	}
	for range 50 {
		took, err := timed(func() error { _, err := client.GetCapacity(ctx, &wire.GetCapacityRequest{}); return err })
		if err != nil {
			return nil, 0, err
		}
		capacities = append(capacities, took)
	}
	page, all, size := percentile(pages, 50), percentile(walks, 50), float64(proto.Size(whole))/(1<<20)
	return []row{
		{fmt.Sprintf("ListVolumes of %d, a page of 1000, p50 / p99", count), "<= 10 ms", ms(page) + " / " + ms(percentile(pages, 99)), page <= 10*time.Millisecond},
		{"the whole walk, median of 5", "<= 1.5 s", ms(all), all <= 1500*time.Millisecond},
		{"an answer to who names no number", "< 4 MiB", fmt.Sprintf("%.1f MiB", size), size < 4},
		{fmt.Sprintf("GetCapacity with %d volumes and 100 drives, p50", count), "-", ms2(percentile(capacities, 50)), true},
	}, percentile(gets, 50), nil
}

func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}

// walk lists all volumes, page by page.
func walk(ctx context.Context, client wire.ControllerClient, page int32) (ids []string, took []time.Duration, err error) {
	for token := ""; ; {
		began := time.Now()
		r, err := client.ListVolumes(ctx, &wire.ListVolumesRequest{MaxEntries: page, StartingToken: token})
		if err != nil {
			return nil, nil, err
		}
		took = append(took, time.Since(began))
		for _, e := range r.Entries {
			ids = append(ids, e.Volume.VolumeId)
		}
		if token = r.NextToken; token == "" {
			return ids, took, nil
		}
	}
}
