package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/secretfile"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

const (
	probeAge  = time.Minute      // of an answer, after which the machine is asked again
	probeTime = 30 * time.Second // that loading the module may take
)

// replication is the volume engine, with an answer to whether it replicates that waits for no program: each caller gets the
// last one, and one that is old is renewed meanwhile.
type replication struct {
	*volume.Engine
	machine host.Machine
	can     func(context.Context) error // asks the machine

	mu      sync.Mutex
	asked   chan struct{} // closed at the end of the question under way; nil: no question is
	at      time.Time     // of the answer; zero: the machine has not answered
	missing error
}

var errNotAsked = fmt.Errorf("replication: %w: the machine has not been asked yet", drivebay.ErrUnavailable)

// Replicates returns why this machine replicates nothing, nil if it can. Only before the first answer it waits for one, until ctx ends.
func (r *replication) Replicates(ctx context.Context) error {
	r.mu.Lock()
	if r.asked == nil && (r.at.IsZero() || r.machine.Now().Sub(r.at).Abs() >= probeAge) {
		r.asked = make(chan struct{})
		go r.ask(r.asked)
	}
	asked, known, missing := r.asked, !r.at.IsZero(), r.missing
	r.mu.Unlock()
	if known {
		return missing
	}
	select {
	case <-asked:
	case <-ctx.Done():
		return errNotAsked
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing
}

func (r *replication) ask(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	missing := r.nextStep(r.can(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing, r.at, r.asked = missing, r.machine.Now(), nil
	close(done)
}

// helper is what the kernel runs at each event: the parameter of the module, which can be written (drivers/block/drbd/drbd_main.c).
const helper = "sys/module/drbd/parameters/usermode_helper"

// nextStep adds what a person can do about an answer. It also refuses a module that was loaded with another helper than the engine
// loads it with: drbdadm knows none of the volumes, and its failure ends a connection (drbd_receiver.c, "before-resync-target").
func (r *replication) nextStep(missing error) error {
	b, err := r.machine.ReadFile(helper)
	loaded, text := err == nil, strings.TrimSpace(string(b))
	switch {
	case errors.Is(missing, drbd.ErrUnavailable) && loaded:
		return fmt.Errorf("%w: the module is loaded, but answers in the network namespace of the machine only: run the daemon there (in a pod: hostNetwork: true)", missing)
	case errors.Is(missing, drbd.ErrUnavailable):
		return fmt.Errorf("%w: install the module drbd (version 8.4) of this kernel, and run `modprobe drbd usermode_helper=/bin/true`", missing)
	case missing == nil && loaded && text != "/bin/true":
		return fmt.Errorf("replication: %w: the module drbd was loaded with usermode_helper=%s, which does not know the volumes: `echo /bin/true | sudo tee /%s`", drivebay.ErrNoSupport, text, helper)
	}
	return missing
}

// drbd returns how the engine opens the DRBD of the machine.
func (d *daemon) drbd() func() (drbd.Kernel, error) {
	if sim, ok := d.machine.(Simulated); ok {
		return sim.DRBD
	}
	return drbd.OpenKernel
}

// secretOf returns what reads the secret with which volumes connect again after a restart of the machine; nil: the file is not configured.
func secretOf(file string) func() (string, error) {
	if file == "" {
		return nil
	}
	return func() (string, error) {
		secret, err := secretfile.Secret(file, nil)
		if err != nil {
			err = fmt.Errorf("replication.secretFile: %w", err)
		}
		return secret, err
	}
}
