//go:build lab

package suite

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/lvm"
)

// TestLabVolumeEvacuateSteps ends a move after its steps, below a device that somebody
// writes to: by SIGKILL, or by cutting the power. A linear volume goes to another drive;
// of a mirror one drive is pulled first, and its successor is filled. Each seventh step,
// killed and cut in turns; each step and both for who has an hour (DRIVEBAY_LAB_LONG=1).
func TestLabVolumeEvacuateSteps(t *testing.T) {
	t.Parallel()
	for backing, drives := range map[drivebay.Backing]int{drivebay.BackingLVM: 2, drivebay.BackingMirror: 3} {
		t.Run(string(backing), func(t *testing.T) {
			w := newMover(t, backing, drives)
			long := os.Getenv("DRIVEBAY_LAB_LONG") != ""
			var steps []string
			for n, at := 0, 1; ; n++ {
				cut := n%2 == 1
				step := w.life(at, cut)
				steps = append(steps, fmt.Sprintf("%s (power cut: %v)", step, cut))
				if step == "" {
					if t.Logf("ended after each of %q", steps); at <= 6 {
						t.Errorf("a move has only %d steps", at-1)
					}
					return
				}
				switch {
				case !long:
					at += 7
				case cut:
					at++
				}
			}
		})
	}
}

// mover is the engine in a process of its own, and the volume that it moves.
type mover struct {
	*lab.Machine
	t       *testing.T
	backing drivebay.Backing
	program string
	drives  int // so many were ever in the machine
}

// keep is where that process remembers things: a drive, for when the power goes.
const keep = "/keep"

func newMover(t *testing.T, backing drivebay.Backing, drives int) *mover {
	t.Helper()
	w := &mover{t: t, backing: backing}
	spec := machine.Spec{Drives: []machine.Drive{nvme("STATE")}}
	for range drives {
		spec.Drives = append(spec.Drives, nvme(w.next()))
	}
	w.Machine = lab.Start(t, spec)
	w.program = w.Tests("./volume", "-tags=lab")
	w.Sh("mkfs.ext4 -q /dev/%s", w.Name("STATE"))
	w.ready()
	w.reach("use")
	w.Sh("dd if=/dev/urandom of=%s bs=1M count=16 oflag=direct status=none", w.device())
	return w
}

// next names a drive that was never there, of those that the process may use.
func (w *mover) next() string {
	w.drives++
	return fmt.Sprintf("%s%d", w.backing, w.drives)
}

// ready is what a boot has to do.
func (w *mover) ready() {
	w.t.Helper()
	w.Must(w.Share(w.t.Context(), "bin"))
	w.Sh("mkdir -p %s && mount /dev/%s %[1]s", keep, w.Name("STATE"))
}

// life is one move, ended after its n-th step, and taken to its end by another
// process; which step that was, "" if it had fewer.
func (w *mover) life(n int, cut bool) (step string) {
	w.t.Helper()
	before := w.sum()
	home := w.text("home")
	pull := w.backing == drivebay.BackingMirror
	if w.writes(); pull {
		w.Must(w.Unplug(w.t.Context(), w.text("serial")))
	}
	p, step := w.start("move", n)
	if step != "" && cut {
		w.PowerCut()
		w.Must(w.Boot(w.t.Context()))
		w.ready()
		w.reach("neighbour")
		w.writes()
	} else if step != "" {
		w.Must(p.Signal(w.t.Context(), syscall.SIGKILL))
		p.Wait()
	}
	if during := w.sum(); during != before {
		w.t.Fatalf("ended after %q: %s, was %s", step, during, before)
	}
	if step != "" {
		w.reach("move")
	}
	if said := w.Output("touch /run/enough; while test -e /run/writing; do sleep 0.1; done; cat /run/failed"); said != "" {
		w.t.Errorf("ended after %q: writing failed: %s", step, said)
	}
	if after := w.sum(); after != before {
		w.t.Fatalf("ended after %q, it went on: %s, was %s", step, after, before)
	}
	if w.text("home") == home {
		w.t.Errorf("ended after %q: it is where it was", step)
	}
	if pull {
		w.Must(w.Plug(w.t.Context(), nvme(w.next())))
	}
	return step
}

// start has the process begin, and returns when it has stopped after its n-th step,
// or has come to its end.
func (w *mover) start(goal string, n int) (*agent.Process, string) {
	w.t.Helper()
	var out said
	p, err := w.Guest.Start(w.t.Context(), agent.Command{
		Argv: []string{w.program, "-test.run=^TestLabKilled$", "-test.v"},
		Env:  []string{"DRIVEBAY_GOAL=" + goal, "DRIVEBAY_DIR=" + keep, "DRIVEBAY_BACKING=" + string(w.backing), fmt.Sprint("DRIVEBAY_AFTER=", n), "DRIVEBAY_STOP=1", "DRIVEBAY_HOME=" + w.text("home")},
	}, agent.Streams{Out: &out, Err: &out})
	w.Must(err)
	for end := time.After(moving); ; {
		select {
		case <-p.Done():
			if err := p.Wait(); err != nil {
				w.t.Fatalf("%s, to be ended after step %d: %v\n%s", goal, n, err, &out)
			}
			return p, ""
		case <-end:
			w.t.Fatalf("%s comes to no end:\n%s", goal, &out)
		case <-time.After(50 * time.Millisecond):
			if _, rest, told := strings.Cut(out.String(), "step: "); told && strings.Contains(rest, "\n") {
				step, _, _ := strings.Cut(rest, "\n")
				return p, step
			}
		}
	}
}

// reach has the process do all that it is to do.
func (w *mover) reach(goal string) {
	w.t.Helper()
	w.start(goal, 0)
}

// text is what the process has written down; "": nothing yet.
func (w *mover) text(name string) string {
	w.t.Helper()
	return w.Output("cat " + keep + "/" + name + " 2>/dev/null")
}

func (w *mover) device() string {
	w.t.Helper()
	return "/dev/mapper/" + lvm.MapperName(w.text("vg"), w.text("lv"))
}

// sum is of the half of the volume that nobody writes to any more.
func (w *mover) sum() string {
	w.t.Helper()
	return w.Sh("echo 3 >/proc/sys/vm/drop_caches; head -c 16M %s | md5sum", w.device())
}

// writes writes to the other half until it is enough.
func (w *mover) writes() {
	w.t.Helper()
	w.Sh(`rm -f /run/enough; touch /run/writing /run/failed
(n=0; while ! test -e /run/enough; do n=$(((n+1)%%16)); dd if=/share/bin/%[2]s of=%[1]s bs=64k count=1 skip=$n seek=$((256+n*16)) oflag=direct conv=notrunc status=none || echo error; sleep 0.2; done; rm /run/writing) </dev/null >/dev/null 2>>/run/failed &`,
		w.device(), strings.TrimPrefix(w.program, "/share/bin/"))
}
