package daemon

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
)

// moduleMachine is a machine of which only the parameter of the module, and the clock, are asked for.
type moduleMachine struct {
	host.Machine
	helper string // "": the module is not loaded
}

func (moduleMachine) Now() time.Time { return time.Now() }
func (m moduleMachine) ReadFile(name string) ([]byte, error) {
	if m.helper == "" || name != helper {
		return nil, fs.ErrNotExist
	}
	return []byte(m.helper + "\n"), nil
}

// TestNextStep: each thing that a machine can lack comes with what to do about it.
func TestNextStep(t *testing.T) {
	for name, row := range map[string]struct {
		helper  string
		missing error
		want    string
	}{
		"all is there":             {"/bin/true", nil, ""},
		"no module":                {"", drbd.ErrUnavailable, "`modprobe drbd usermode_helper=/bin/true`"},
		"another network":          {"/bin/true", drbd.ErrUnavailable, "hostNetwork: true"},
		"loaded by something else": {"/sbin/drbdadm", nil, "`echo /bin/true | sudo tee /sys/module/drbd/parameters/usermode_helper`"},
		"something else":           {"/bin/true", fs.ErrPermission, "permission"},
	} {
		r := &replication{machine: moduleMachine{helper: row.helper}}
		err := r.nextStep(row.missing)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) || row.missing != nil && !errors.Is(err, row.missing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplicatesDoesNotWait: callers get the last answer at once while the machine is asked again, and a machine that hangs is
// asked once at a time.
func TestReplicatesDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := 0, make(chan error)
		r := &replication{machine: moduleMachine{helper: "/bin/true"}, can: func(context.Context) error { asked++; return <-answer }}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Replicates(soon); !errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrNoSupport) {
			t.Errorf("before the first answer: %v", err)
		}
		answer <- drivebay.ErrNoSupport
		synctest.Wait()
		if err := r.Replicates(t.Context()); !errors.Is(err, drivebay.ErrNoSupport) || asked != 1 {
			t.Errorf("after it: %v, asked %d times", err, asked)
		}
		time.Sleep(probeAge)
		for range 3 {
			if err := r.Replicates(t.Context()); !errors.Is(err, drivebay.ErrNoSupport) {
				t.Errorf("while it is asked again: %v", err)
			}
		}
		answer <- nil
		synctest.Wait()
		if err := r.Replicates(t.Context()); err != nil || asked != 2 {
			t.Errorf("after the second answer: %v, asked %d times", err, asked)
		}
	})
}
