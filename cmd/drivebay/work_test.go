package main

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// TestScrubWaits: --wait ends with the verdict on the filesystem.
func TestScrubWaits(t *testing.T) {
	r, client := rack(t, 2, "--claim", "all")
	eventually(t, patience, func() bool {
		_, _, code := call(t, r.env, "volume", "create", "data-1", "--size", "1GiB")
		return code == exitOK
	}, r.err.String)
	out, errs, code := call(t, r.env, "scrub", "data-1", "--wait")
	if code != exitOK || !strings.Contains(out, "(data-1): no error found in its filesystem") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	v, err := client.Volume(t.Context(), "data-1")
	if err != nil {
		t.Fatal(err)
	}
	d, err := client.Drive(t.Context(), v.Location.Drives[0])
	if err != nil {
		t.Fatal(err)
	}
	r.fault(t, d.Name+"1", "fs-corrupt")
	if out, errs, code := call(t, r.env, "scrub", "data-1", "--wait"); code != exitFailure || !strings.Contains(errs, "found its filesystem corrupted") {
		t.Errorf("corrupted: exit %d, %s%s", code, out, errs)
	}
}

// TestWorkIsShown: the work of the volume with this ID or name is shown, and not that of one whose name
// begins with it.
func TestWorkIsShown(t *testing.T) {
	e := newEngine(twoDrives())
	v := newVolumes(e)
	busy := *v.set.Load()
	view := *busy.Volumes[0]
	view.Work, view.Progress = "remove", &drivebay.Progress{Done: 1 << 30, Total: 4 << 30}
	busy.Volumes = append([]*drivebay.VolumeView{&view}, busy.Volumes[1:]...)
	v.set.Store(&busy)
	env := daemonWith(t, e, api.Options{Volumes: v})
	client := api.Dial(env["DRIVEBAY_API"])
	t.Cleanup(client.Close)
	for what, shown := range map[string]bool{"data-1": true, "data": false} {
		var errs safeBuffer
		bar := testApp(env, &safeBuffer{}, &errs).showWork(t.Context(), client, what)
		want := "remove of volume " + dataVolume + " (data-1): 25 %  1 GiB of 4 GiB\n"
		if shown {
			eventually(t, patience, func() bool { return errs.String() == want }, errs.String)
		} else {
			time.Sleep(workTime + workPoll/2)
		}
		bar.end()
		if errs.String() == want != shown {
			t.Errorf("%s: %q", what, errs.String())
		}
	}
}
