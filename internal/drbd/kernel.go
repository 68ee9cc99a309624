package drbd

import (
	"context"
	"net/netip"
)

// Kernel is the DRBD of a kernel: a Client, or that of a simulated machine.
type Kernel interface {
	NewResource(ctx context.Context, resource string) error
	NewMinor(ctx context.Context, resource string, volume, minor uint32) error
	Attach(ctx context.Context, minor uint32, b Backing) error
	Detach(ctx context.Context, minor uint32, force bool) error
	Connect(ctx context.Context, resource string, p Peer) error
	Disconnect(ctx context.Context, local, remote netip.AddrPort, force bool) error
	Primary(ctx context.Context, minor uint32, force bool) error
	Secondary(ctx context.Context, minor uint32) error
	Resize(ctx context.Context, minor uint32, bytes uint64) error
	Invalidate(ctx context.Context, minor uint32) error
	Down(ctx context.Context, resource string) error
	Status(ctx context.Context, minor uint32) (Status, error)
	List(ctx context.Context) ([]Status, error)
	Close() error
}

// OpenKernel is Open for a caller that does not know which kernel it gets.
func OpenKernel() (Kernel, error) {
	c, err := Open()
	if err != nil {
		return nil, err
	}
	return c, nil
}
