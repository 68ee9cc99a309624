package main

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const kubelet = "/var/lib/kubelet"

// node is a whole CSI driver on a simulated machine of 100 drives. It runs in this
// process, so that its accesses to the machine can be counted.
type node struct {
	endpoint
	sim    *hostsim.Machine
	drives *drivemgr.Manager
	engine *volume.Engine
	dir    string
	stop   context.CancelFunc
	ended  chan error
}

// newNode starts a node that has the records of so many volumes whose drives are gone:
// each of them is abnormal. With a tick of zero the engines use their default
// intervals.
func newNode(remembered int, tick time.Duration) (*node, error) {
	n := &node{ended: make(chan error, 3)}
	var err error
	if n.sim, err = hostsim.New(hostsim.Generate(100)); err != nil {
		return nil, err
	}
	if n.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	st := store.Memory()
	if err := remember(st, remembered); err != nil {
		return nil, err
	}
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("all")); err != nil {
		return nil, err
	}
	n.drives = drivemgr.New(n.sim, st, drivemgr.Options{Claim: claim, Tick: tick, Poll: tick, Rescan: tick})
	if n.engine, err = volume.New(n.sim, n.drives, st, lvm.New(n.sim, ""), volume.Options{Node: "bench", Roots: []string{kubelet}, Tick: tick}); err != nil {
		return nil, err
	}
	socket := filepath.Join(n.dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	n.endpoint = endpoint("unix://" + socket)
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	server := csi.New(n.drives, csi.Options{Version: "bench", NodeID: "bench", Volumes: n.engine})
	go func() { n.ended <- n.drives.Run(ctx) }()
	go func() { n.ended <- n.engine.Run(ctx) }()
	go func() { n.ended <- server.Serve(ctx, l) }()
	return n, n.wait()
}

// remember puts the records of n volumes into a store.
func remember(st *store.Mem, n int) error {
	for i := range n {
		name := fmt.Sprintf("remembered-%06d", i)
		sum := sha256.Sum256([]byte("volume\x00" + name))
		id := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
		err := st.PutVolume(drivebay.VolumeRecord{Volume: drivebay.Volume{ID: id, Name: name, Node: "bench", Size: 1 << 30, Mode: drivebay.ModeFS, FSType: "ext4",
			Location:  drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{fmt.Sprintf("naa-%016x", i%100)}, Partition: id},
			CSIStatus: drivebay.CSICreated, Usage: drivebay.VolumeInUse}})
		if err != nil {
			return err
		}
	}
	return nil
}

// wait returns when the drives are claimed and the volume engine is ready.
func (n *node) wait() error {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		claimed := 0
		for _, d := range n.drives.Snapshot().Drives {
			if d.Claim != nil {
				claimed++
			}
		}
		if claimed == 98 && n.engine.Volumes().Seq > 0 {
			return nil
		}
	}
	return errors.New("the drives of the simulated machine cannot be used")
}

func (n *node) close() error {
	n.stop()
	err := errors.Join(<-n.ended, <-n.ended, <-n.ended, os.RemoveAll(n.dir))
	n.sim.Close()
	return err
}

// use reads a volume as a pod does: that makes a hang visible.
func (n *node) use(v published) {
	_, _ = n.sim.ReadFolder(context.Background(), host.Place{Root: kubelet, Name: strings.TrimPrefix(v.staging, kubelet+"/")})
}

// endpoint is the socket of a CSI driver.
type endpoint string

// dial returns a connection, which is opened when it is used first.
func (e endpoint) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(string(e), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// published is a volume with its staging and target paths.
type published struct{ id, staging, target string }

// make creates, stages and publishes a volume, and returns how long that took.
func (e endpoint) make(name string, size int64, root string) (v published, took time.Duration, err error) {
	conn, err := e.dial()
	if err != nil {
		return v, 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	use := &wire.VolumeCapability{AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	began := time.Now()
	made, err := wire.NewControllerClient(conn).CreateVolume(ctx, &wire.CreateVolumeRequest{Name: name, CapacityRange: &wire.CapacityRange{RequiredBytes: size},
		VolumeCapabilities: []*wire.VolumeCapability{use}})
	if err != nil {
		return v, 0, err
	}
	id := made.Volume.VolumeId
	v = published{id, root + "/staging-" + id, root + "/target-" + id}
	client := wire.NewNodeClient(conn)
	if _, err := client.NodeStageVolume(ctx, &wire.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: v.staging, VolumeCapability: use}); err != nil {
		return v, 0, err
	}
	_, err = client.NodePublishVolume(ctx, &wire.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: v.staging, TargetPath: v.target, VolumeCapability: use})
	return v, time.Since(began), err
}

// fill makes volumes until there are n.
func (e endpoint) fill(have []published, n int) ([]published, []time.Duration, error) {
	var all []time.Duration
	for i := len(have); i < n; i++ {
		v, took, err := e.make(fmt.Sprintf("bench-%06d", i), 1<<30, kubelet)
		if err != nil {
			return have, nil, err
		}
		have, all = append(have, v), append(all, took)
	}
	return have, all, nil
}

// remove unpublishes, unstages and deletes a volume.
func (e endpoint) remove(v published) error {
	conn, err := e.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := wire.NewNodeClient(conn)
	_, err = client.NodeUnpublishVolume(ctx, &wire.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target})
	if err == nil {
		_, err = client.NodeUnstageVolume(ctx, &wire.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging})
	}
	if err == nil {
		_, err = wire.NewControllerClient(conn).DeleteVolume(ctx, &wire.DeleteVolumeRequest{VolumeId: v.id})
	}
	return err
}
