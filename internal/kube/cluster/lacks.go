package cluster

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// nodeOnly is what only the daemon of a node can do.
type nodeOnly struct{}

// onNode returns the error of a call that only the daemon of a node can make.
func onNode(what, node string) error {
	if node == "" {
		node = "that has it"
	}
	return fmt.Errorf("%s: %w over the API server: run `drivebay` in the pod of the node %s", what, drivebay.ErrNoSupport, node)
}

func (nodeOnly) Refresh(context.Context) error { return onNode("refresh", "") }
func (nodeOnly) Pages(context.Context, string) ([]drivebay.RawPage, error) {
	return nil, onNode("read a drive", "")
}
func (nodeOnly) SelfTest(context.Context, string, string) error { return onNode("self-test", "") }
func (nodeOnly) Acknowledge(context.Context, string, string) error {
	return onNode("acknowledge a finding", "")
}
func (nodeOnly) Unread() ([]string, bool) { return nil, true }
func (nodeOnly) Unwritten() []string      { return nil }
func (nodeOnly) Newer() []string          { return nil }
func (nodeOnly) Capabilities() drivebay.VolumeCapabilities {
	return drivebay.VolumeCapabilities{}
}
func (nodeOnly) CreateVolume(context.Context, drivebay.VolumeRequest) (drivebay.Volume, error) {
	return drivebay.Volume{}, onNode("create a volume", "")
}
func (nodeOnly) DeleteVolume(context.Context, string) error {
	return onNode("delete a volume", "")
}
func (nodeOnly) ExpandVolume(context.Context, string, drivebay.SizeRange) (drivebay.Volume, bool, error) {
	return drivebay.Volume{}, false, onNode("expand a volume", "")
}
func (nodeOnly) ExpandNode(context.Context, string, string, drivebay.SizeRange, drivebay.Secrets) (uint64, error) {
	return 0, onNode("expand a volume", "")
}
func (nodeOnly) CreateSnapshot(context.Context, string, string) (drivebay.VolumeSnapshot, error) {
	return drivebay.VolumeSnapshot{}, onNode("create a snapshot", "")
}
func (nodeOnly) DeleteSnapshot(context.Context, string) error {
	return onNode("delete a snapshot", "")
}
func (nodeOnly) Capacity(context.Context, drivebay.Class) (drivebay.Capacity, error) {
	return drivebay.Capacity{}, onNode("capacity", "")
}
func (nodeOnly) Room(context.Context, string, drivebay.RoomQuery) (drivebay.VolumeRoom, error) {
	return drivebay.VolumeRoom{}, onNode("the room of a volume", "")
}
func (nodeOnly) ScrubVolume(context.Context, string) error { return onNode("scrub", "") }
func (nodeOnly) RetryVolume(context.Context, string) error { return onNode("retry a volume", "") }
func (nodeOnly) ClearVolume(context.Context, string) error { return onNode("clear a volume", "") }
func (nodeOnly) AcceptLoss(context.Context, string) error {
	return onNode("accept the loss of data", "")
}
func (nodeOnly) ForgetSnapshot(context.Context, string) error {
	return onNode("forget a snapshot", "")
}
func (nodeOnly) ForgetDrive(_ context.Context, id, _ string) error {
	return onNode("forget drive "+id, "")
}
