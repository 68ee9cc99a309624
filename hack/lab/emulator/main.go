// Command emulator serves emulated drives and enclosures to the kernel that it
// runs on, and their faults to whoever asks on its control socket. It is meant for
// the guests of the lab.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drivebay/drivebay/hack/lab/emul"
	"github.com/drivebay/drivebay/hack/lab/emul/tcmu"
)

func main() {
	spec := flag.String("spec", "", "`file` that describes the devices, as JSON")
	control := flag.String("control", "unix:///run/emulator.sock", "where to be controlled")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *spec, *control); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, specFile, control string) (err error) {
	spec, err := readSpec(specFile)
	if err != nil {
		return err
	}
	units, err := emul.Units(spec)
	if err != nil {
		return err
	}
	if err := prepare(ctx); err != nil {
		return err
	}
	listener, err := listen(control)
	if err != nil {
		return err
	}
	defer listener.Close()
	devices, err := attachAll(ctx, units)
	defer func() { err = errors.Join(err, detachAll(devices)) }()
	if err != nil {
		return err
	}
	fmt.Print(readyLine(devices))
	return serve(ctx, listener, handler(devices))
}

func readSpec(file string) (emul.Spec, error) {
	var s emul.Spec
	b, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("read the specification: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("read the specification %s: %w", file, err)
	}
	return s, nil
}

// listen takes unix:///path only: who may open the socket is for its mode to say.
func listen(control string) (net.Listener, error) {
	path, ok := strings.CutPrefix(control, "unix://")
	if !ok {
		return nil, fmt.Errorf("control socket %q is not unix:///path", control)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return net.Listen("unix", path)
}

// attachTime is how long the kernel may take to find all devices.
const attachTime = 60 * time.Second

// attachAll attaches all at the same time; what was attached comes back also with
// an error.
func attachAll(ctx context.Context, units []*emul.Unit) ([]*tcmu.Device, error) {
	ctx, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	devices, errs := make([]*tcmu.Device, len(units)), make([]error, len(units))
	var wg sync.WaitGroup
	for i, p := range places(units) {
		wg.Go(func() { devices[i], errs[i] = tcmu.Attach(ctx, units[i], p.host, p.target) })
	}
	wg.Wait()
	var attached []*tcmu.Device
	for _, d := range devices {
		if d != nil {
			attached = append(attached, d)
		}
	}
	return attached, errors.Join(errs...)
}

type place struct{ host, target int }

// places gives every device a host of its own, unless it names one.
func places(units []*emul.Unit) []place {
	named, used := map[string]int{}, map[int]int{}
	out := make([]place, len(units))
	hosts := 0
	for i, u := range units {
		host, known := named[u.Host]
		if !known || u.Host == "" {
			host = hosts
			hosts++
			named[u.Host] = host
		}
		used[host]++
		out[i] = place{host, used[host]}
	}
	return out
}

func detachAll(devices []*tcmu.Device) error {
	errs := make([]error, len(devices))
	var wg sync.WaitGroup
	for i, d := range devices {
		wg.Go(func() { errs[i] = d.Detach() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// readyLine names the devices for people and scripts.
func readyLine(devices []*tcmu.Device) string {
	var b strings.Builder
	b.WriteString("ready")
	for _, d := range devices {
		n := d.Names()
		dev := n.Dev
		if dev == "" {
			dev = n.Generic
		}
		fmt.Fprintf(&b, " %s=/dev/%s", d.Unit.Name, dev)
	}
	b.WriteString("\n")
	return b.String()
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
