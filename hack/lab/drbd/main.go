// Command drbd drives package drbd in a guest: one request a call. A secret comes by the environment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"

	"github.com/drivebay/drivebay/internal/drbd"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		for status, class := range map[int]error{10: drbd.ErrUnavailable, 11: drbd.ErrTwoPrimaries, 12: drbd.ErrNotUpToDate,
			13: drbd.ErrInUse, 14: drbd.ErrNotFound, 15: drbd.ErrUnclean, 16: drbd.ErrAddressInUse} {
			if errors.Is(err, class) {
				os.Exit(status)
			}
		}
		os.Exit(1)
	}
}

const (
	resource = "lab"
	minor    = 7
)

func run(ctx context.Context, verb string, args []string) error {
	if verb == "metadata" {
		return metadata(args[0])
	}
	c, err := drbd.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	force := len(args) > 0 && args[len(args)-1] == "force"
	switch verb {
	case "new":
		if err := c.NewResource(ctx, resource); err != nil {
			return err
		}
		return c.NewMinor(ctx, resource, 0, minor)
	case "attach":
		return c.Attach(ctx, minor, drbd.Backing{Disk: args[0], Metadata: args[1], Bytes: size(args[2])})
	case "detach":
		return c.Detach(ctx, minor, force)
	case "connect":
		secret, err := drbd.NewSecret(os.Getenv("SECRET"))
		if err != nil {
			return err
		}
		return c.Connect(ctx, resource, drbd.Peer{Local: netip.MustParseAddrPort(args[0]), Remote: netip.MustParseAddrPort(args[1]),
			Protocol: drbd.ProtocolC, Secret: secret, DiscardMyData: len(args) > 2 && args[2] == "discard"})
	case "disconnect":
		return c.Disconnect(ctx, netip.MustParseAddrPort(args[0]), netip.MustParseAddrPort(args[1]), force)
	case "primary":
		return c.Primary(ctx, minor, force)
	case "secondary":
		return c.Secondary(ctx, minor)
	case "resize":
		return c.Resize(ctx, minor, size(args[0]))
	case "invalidate":
		return c.Invalidate(ctx, minor)
	case "down":
		return c.Down(ctx, resource)
	case "status":
		s, err := c.Status(ctx, minor)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(s)
	case "list":
		all, err := c.List(ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	return fmt.Errorf("no verb %q", verb)
}

func size(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func metadata(device string) error {
	f, err := os.Open(device)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, drbd.SuperblockBytes)
	if _, err := io.ReadFull(f, b); err != nil {
		return err
	}
	m, err := drbd.DecodeMetadata(b)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}
