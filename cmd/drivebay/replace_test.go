package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/internal/api"
)

// begin runs a command that waits for something, as one who looks on.
func (r *running) begin(t *testing.T, args ...string) (out *safeBuffer, ended chan int, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience) // it waits for many facts
	t.Cleanup(cancel)
	out, ended = &safeBuffer{}, make(chan int, 1)
	a := testApp(r.env, out, out)
	go func() { ended <- a.run(ctx, args) }()
	return out, ended, cancel
}

func says(t *testing.T, out *safeBuffer, words ...string) {
	t.Helper()
	for _, w := range words {
		eventually(t, patience, func() bool { return strings.Contains(out.String(), w) }, func() string { return w + " is not said in:\n" + out.String() })
	}
}

// TestReplace is one command of the operator, from a drive in use to its successor in
// use, left and resumed, with the wrong sled pulled and the wrong drive put in meanwhile.
func TestReplace(t *testing.T) {
	r, client := rack(t, 6, "--claim", "id=none")
	old := inBay(t, client, "Slot 02")[0]
	if _, errs, code := call(t, r.env, "claim", old.ID); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := call(t, r.env, "volume", "create", "data-1", "--size", "1GiB"); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := call(t, r.env, "replace", "2", "--why", "it clicks"); code != exitFailure || !strings.Contains(errs, "is GOOD; to replace it nevertheless, run `drivebay replace "+old.ID+" --yes`") {
		t.Errorf("a drive that is GOOD, and no terminal: %d %s", code, errs)
	}
	if _, errs, code := call(t, r.env, "release", "2", "--why", "it clicks"); code != 0 {
		t.Fatal(errs)
	}
	out, ended, leave := r.begin(t, "replace", "2")
	says(t, out, "drive "+old.ID, "bay Slot 02", "serial "+old.Serial, "WWN "+old.WWN, "between Slot 01 (serial ", "RELEASING", "volume data-1")
	leave()
	if code := <-ended; code != exitFailure || !strings.Contains(out.String(), "`drivebay replace "+old.ID+"` continues it") {
		t.Errorf("left: exit %d\n%s", code, out)
	}
	out, ended, _ = r.begin(t, "replace", "2", "--yes")
	says(t, out, "volume data-1 (CREATED)")
	if _, errs, code := call(t, r.env, "volume", "release", "data-1"); code != 0 {
		t.Fatal(errs)
	}
	says(t, out, "SAFE TO PULL: server ACME S2400, serial SIM-RACK, bay Slot 02, ", "drive serial "+old.Serial, "fault light")
	r.fault(t, "3", "vanish")
	says(t, out, "! wrong drive pulled: put the drive with serial ", "back into bay Slot 03", "the drive to pull is "+old.ID)
	r.fault(t, "3", "return")
	says(t, out, "! back: ")
	r.fault(t, "4", "replace", "serial=ELSEWHERE")
	says(t, out, "serial ELSEWHERE, bay Slot 04; it is not a successor: insert the successor into bay Slot 02")
	r.fault(t, "2", "replace", "serial=SMALL", "size=1TB")
	says(t, out, "is not accepted as the successor: has ")
	r.fault(t, "2", "vanish")
	r.fault(t, old.Serial, "replace", "serial=NEXT")
	says(t, out, ", serial NEXT, is the successor: claimed by the operator, IN_USE")
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d\n%s", code, out)
	}
	eventually(t, patience, func() bool {
		s, err := client.Drives(t.Context())
		return err == nil && !slices.ContainsFunc(s.Bays, func(b drivebay.Bay) bool { return b.Lit || b.FaultLit })
	}, r.err.String)
	if _, errs, code := call(t, r.env, "replace", "2", "--yes"); code != exitFailure || !strings.Contains(errs, "replaced drive "+old.ID) {
		t.Errorf("the same call again: %d %s", code, errs)
	}
	if out, _, code := call(t, r.env, "replace", old.ID); code != exitOK || !strings.Contains(out, "is the successor") {
		t.Errorf("the old drive again: %d %s", code, out)
	}
}

// What cannot be asked of anybody is refused, and --detach does not wait.
func TestReplaceUnattended(t *testing.T) {
	r, client := rack(t, 4)
	d := inBay(t, client, "Slot 01")[0]
	if _, errs, code := call(t, r.env, "release", "1"); code != 0 {
		t.Fatal(errs)
	}
	if out, _, code := call(t, r.env, "replace", "1", "--detach"); code != exitOK || !strings.Contains(out, "RELEASED: nothing depends on the drive") || !strings.Contains(out, "--yes` removes the drive") {
		t.Errorf("--detach: %d %s", code, out)
	}
	if _, errs, code := call(t, r.env, "replace", "1"); code != exitFailure || !strings.Contains(errs, "add --yes") || !strings.Contains(errs, d.Serial) {
		t.Errorf("nobody to ask: %d %s", code, errs)
	}
	if _, errs, code := call(t, r.env, "replace", "nowhere"); code != exitFailure || !strings.Contains(errs, "not found") {
		t.Errorf("no such bay: %d %s", code, errs)
	}
	out, ended, _ := r.begin(t, "replace", "1", "--yes")
	says(t, out, "SAFE TO PULL")
	r.fault(t, "1", "replace", "serial=NEXT")
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// At a terminal the command asks before it releases a drive that is GOOD, and before it removes a drive.
func TestReplaceAsks(t *testing.T) {
	r, client := rack(t, 4)
	for _, tc := range []struct {
		answer string
		code   int
		usage  drivebay.Usage
	}{{"n\n", exitFailure, drivebay.UsageInUse}, {"y\nn\n", exitFailure, drivebay.UsageReleased}, {"", exitFailure, drivebay.UsageReleased}, {"yes\n", exitFailure, drivebay.UsageRemoved}} {
		ctx, leave := context.WithTimeout(t.Context(), 2*patience)
		var out safeBuffer
		a := testApp(r.env, &out, &out)
		a.tty, a.in = true, strings.NewReader(tc.answer)
		ended := make(chan int, 1)
		go func() { ended <- a.run(ctx, []string{"replace", "1"}) }()
		eventually(t, patience, func() bool {
			return inBay(t, client, "Slot 01")[0].Usage == tc.usage && strings.Contains(out.String(), "[y/N]")
		}, out.String)
		if tc.usage == drivebay.UsageRemoved {
			leave()
		}
		if code := <-ended; code != tc.code {
			t.Errorf("%q: exit %d\n%s", tc.answer, code, &out)
		}
		leave()
	}
}

// What goes with a drive is named, and wanted back.
func TestForceRemove(t *testing.T) {
	r, client := rack(t, 4, "--claim", "all")
	if _, errs, code := call(t, r.env, "volume", "create", "data-1", "--size", "1GiB"); code != 0 {
		t.Fatal(errs)
	}
	set, err := api.Dial(r.env["DRIVEBAY_API"]).Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := set.Volumes[0].Location.Drives[0]
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"force-remove " + id + " --yes --lose-all", exitFailure, "run `drivebay release " + id + "` first"},
		{"release " + id, exitOK, ""},
		{"force-remove " + id, exitFailure, "volume " + set.Volumes[0].ID + " (data-1)"},
		{"force-remove " + id + " --yes", exitFailure, "--yes, and --lose NAME for each of them"},
		{"force-remove " + id + " --yes --lose data-2", exitFailure, "permanently lost: volume "},
		{"force-remove " + id + " --yes --lose data-1", exitOK, ""},
		{"cordon " + id, exitOK, ""},
		{"uncordon " + id, exitOK, ""},
	} {
		out, errs, code := call(t, r.env, strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit %d %s%s", tc.args, code, out, errs)
		}
	}
	eventually(t, patience, func() bool {
		d, err := client.Drive(t.Context(), id)
		return err == nil && d.Usage == drivebay.UsageRemoved && d.Status == drivebay.StatusOffline
	}, r.err.String)
}

// The daemon stops while the command waits: with the daemon the command comes back.
func TestReplaceAfterARestart(t *testing.T) {
	r, client := rack(t, 4)
	old := inBay(t, client, "Slot 01")[0]
	if _, errs, code := call(t, r.env, "release", "1", "--why", "it clicks"); code != 0 {
		t.Fatal(errs)
	}
	if out, _, code := call(t, r.env, "replace", "1", "--detach"); code != exitOK {
		t.Errorf("--detach: %d %s", code, out)
	}
	sim := filepath.Join(t.TempDir(), "rack.yaml")
	write(t, sim, "machine: rack\nenclosures:\n  - {name: front, kind: ses, bays: 4}\ndrives:\n  - {bays: 0-3, enclosure: front, kind: sata-hdd}\n")
	r.end()
	again := serve(t, "--sim", sim, "--state-dir", r.dir+"/state")
	if out, errs, code := call(t, again.env, "replace", "1", "--yes", "--detach"); code != exitOK || !strings.Contains(out, "drive "+old.ID) || !strings.Contains(out, "SAFE TO PULL") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	out, ended, _ := again.begin(t, "replace", "1")
	says(t, out, "SAFE TO PULL")
	again.fault(t, "1", "replace", "serial=NEXT")
	if code := <-ended; code != exitOK || !strings.Contains(out.String(), "serial NEXT, is the successor") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// Progress is a line now and then for a log, and one line that changes at a terminal.
func TestProgressIsTold(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moving := func(gib uint64) step {
		return stepOf(&drivebay.Snapshot{}, &drivebay.Drive{Usage: drivebay.UsageReleasing, Leaving: &drivebay.Leaving{Cause: "volume data-1 moves",
			Progress: &drivebay.Progress{Done: gib << 30, Total: 100 << 30, End: now.Add(90 * time.Second)}}})
	}
	const first = "RELEASING: the drive gets no new volumes; volume data-1 moves\n"
	for _, tc := range []struct {
		tty   bool
		want  []string
		lines int
	}{
		{false, []string{first + "moved: 1 %  1 GiB of 100 GiB  1.1 GiB/s, done in 90 s\n", "11 %", "60 %"}, 5},
		{true, []string{first + "\r\x1b[Kmoved  [....................]   1 %  1 GiB of 100 GiB", "[############........]  60 %  60 GiB of 100 GiB", ", done in 90 s\nRELEASED"}, 3},
	} {
		var out safeBuffer
		a := testApp(nil, &out, &out)
		a.tty, a.now = tc.tty, func() time.Time { return now }
		r := replacement{app: a}
		for _, gib := range []uint64{1, 1, 5, 11, 12, 60} {
			if err := r.tell(moving(gib)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.tell(stepOf(nil, &drivebay.Drive{Usage: drivebay.UsageReleased})); err != nil {
			t.Fatal(err)
		}
		for _, w := range tc.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is not in %q", w, out.String())
			}
		}
		if n := strings.Count(out.String(), "\n"); n != tc.lines {
			t.Errorf("%d lines: %q", n, out.String())
		}
	}
}

// What somebody still has from a drive that is there is not lost by a command; from one
// that is gone it is.
func TestForceRemoveOfWhatIsMounted(t *testing.T) {
	for _, status := range []drivebay.Status{drivebay.StatusOnline, drivebay.StatusOffline} {
		s := twoDrives()
		s.Drives[0].Usage, s.Drives[0].Status = drivebay.UsageReleasing, status
		e := newEngine(s)
		v := newVolumes(e)
		v.set.Load().Volumes[0].Publications = []drivebay.Publication{{Path: "/pods/data-1"}}
		_, errs, code := call(t, daemonWith(t, e, api.Options{Volumes: v}), "force-remove", "sd1", "--yes", "--lose", "data-1")
		if here := status == drivebay.StatusOnline; here != (code == exitFailure) || here != strings.Contains(errs, "is still mounted at /pods/data-1") || here == (len(e.done) == 1) {
			t.Errorf("%v: exit %d %s, did %q", status, code, errs, e.done)
		}
	}
}

// eventsOf is a source with these events.
type eventsOf struct {
	source
	events []drivebay.Event
}

func (e eventsOf) Events(_ context.Context, after uint64, _ int) (out []drivebay.Event, err error) {
	for _, ev := range e.events {
		if ev.Seq > after {
			out = append(out, ev)
		}
	}
	return out, nil
}

// TestNewsOfANewDrive: an event that comes before the snapshot with its drive is told
// with that snapshot, in full and once; one whose drive is gone again is told, too.
func TestNewsOfANewDrive(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old := drivebay.Drive{ID: "old", Slot: drivebay.Slot{Enclosure: "e", Bay: "Slot 02"}}
	next := drivebay.Drive{ID: "new", Slot: drivebay.Slot{Enclosure: "e", Bay: "Slot 04"}}
	src := eventsOf{events: []drivebay.Event{
		{Seq: 1, At: at, Kind: drivebay.EventAppeared, Drive: "new", Cause: "found new, bay Slot 04"},
		{Seq: 2, At: at, Kind: drivebay.EventAppeared, Drive: "gone", Cause: "found gone"},
	}}
	var out safeBuffer
	r := replacement{app: testApp(nil, &out, &out), src: src, drive: "old"}
	with := func(after time.Duration, drives ...drivebay.Drive) *drivebay.Snapshot {
		return &drivebay.Snapshot{At: at.Add(after), Drives: drives}
	}
	for _, step := range []struct {
		s    *drivebay.Snapshot
		want string
	}{
		{with(-time.Second, old), ""},
		{with(0, next, old), "! found new, bay Slot 04; it is not a successor: insert the successor into bay Slot 02\n"},
		{with(time.Second, next, old), "! found gone\n"},
		{with(2*time.Second, next, old), ""},
	} {
		before := len(out.String())
		if err := r.tellEvents(t.Context(), step.s); err != nil {
			t.Fatal(err)
		}
		if got := out.String()[before:]; got != step.want {
			t.Errorf("at %v: told %q, want %q", step.s.At.Sub(at), got, step.want)
		}
	}
}

// TestRemovedAndInUse: a drive that was removed, is back and is in use is not safe to pull, with bays and without; nor is one that the kernel
// does not remove.
func TestRemovedAndInUse(t *testing.T) {
	for _, bay := range []string{"", "1"} {
		for _, u := range []drivebay.Use{{Kind: "mount", Device: "sdb1", What: "/mnt"}, {Kind: "md", Device: "md0"}, {Kind: "lvm", Device: "dm-0", Ours: true}, {Kind: "partition", Device: "sdb1", Ours: true}} {
			d := &drivebay.Drive{ID: "d", Usage: drivebay.UsageRemoved, Status: drivebay.StatusOnline, Slot: drivebay.Slot{Bay: bay}, Uses: []drivebay.Use{u}}
			idle := u.Kind == "partition"
			if st := stepOf(&drivebay.Snapshot{}, d); strings.Contains(st.text, "SAFE TO PULL") != idle || strings.Contains(st.text, u.Device) == idle || st.done && !idle {
				t.Errorf("bay %q, %+v: %+v", bay, u, st)
			}
			if is := overview.OfDrive(d); strings.Contains(is.Waits, u.Device) == idle {
				t.Errorf("bay %q, %+v: %+v", bay, u, is)
			}
			d.Usage = drivebay.UsageRemoving // the kernel has no file to remove it
			if st := stepOf(&drivebay.Snapshot{}, d); strings.Contains(st.text, "pull the drive anyway") != idle || strings.Contains(st.text, u.Device) == idle {
				t.Errorf("bay %q, %+v: %+v", bay, u, st)
			}
		}
	}
}
