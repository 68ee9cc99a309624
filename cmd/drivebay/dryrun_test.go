package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestDryRuns: a dry run prints what the command would do, or why it would be refused, ends with exit
// status 0, and changes neither a drive, nor a volume, nor the events.
func TestDryRuns(t *testing.T) {
	r, client := rack(t, 4, "--claim", "all")
	for _, args := range []string{"volume create data-1 --size 1GiB", "volume create copy-1 --size 1GiB --backing mirror", "volume create thin-1 --size 1GiB --backing thin", "volume snapshot thin-1 snap-1"} {
		if _, errs, code := call(t, r.env, strings.Fields(args)...); code != 0 {
			t.Fatal(errs)
		}
	}
	set, err := client.Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, _ := set.Find("data-1")
	on, err := client.Drive(t.Context(), data.Location.Drives[0])
	if err != nil {
		t.Fatal(err)
	}
	state := func() (drives []string, volumes string, events int) {
		s, err := client.Drives(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Drives {
			drives = append(drives, d.ID+" "+d.Usage.String()+" "+d.Status.String())
		}
		v, err := client.Volumes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.Events(t.Context(), 0, 0)
		text, _ := json.Marshal(v.Volumes)
		if err != nil {
			t.Fatal(err)
		}
		return drives, string(text), len(list)
	}
	drives, volumes, events := state()
	bay := strings.TrimPrefix(on.Slot.Bay, "Slot 0")
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"replace " + bay + " --dry-run", []string{"health: GOOD", "would: place no new volumes on the drive", "would: copy volume " + data.ID + " (data-1) of 1 GiB to drive ", "would: have the kernel remove the drive", "in bay Slot 0" + bay + ", which inherits the claim"}},
		{"replace " + bay + " --dry-run --yes", []string{"dry run, nothing is changed"}},
		{"release " + on.Name + " --dry-run", []string{"would: copy volume " + data.ID}},
		{"approve " + bay + " --dry-run", []string{"would be refused now: drive usage IN_USE", "would: have the kernel remove the drive"}},
		{"force-remove " + bay + " --dry-run", []string{"would be refused now: drive usage IN_USE", "would: lose volume " + data.ID + " (data-1) for good"}},
		{"forget " + bay + " --dry-run", []string{"would be refused now: drive " + on.ID, "the drive is ONLINE"}},
		{"cancel " + bay + " --dry-run", []string{"would be refused now"}},
		{"volume delete data-1 --dry-run", []string{"would: wipe 1 GiB of data on drive " + on.ID + " (" + on.Name + ", bay Slot 0" + bay + ") (drivebay.io/wipe=discard)", "would: delete the volume (PARTITION) and its record"}},
		{"volume delete data-1 --dry-run --yes", []string{"nothing is changed"}},
		{"volume forget data-1 --dry-run", []string{"would be refused now", "is ONLINE", "would: delete the record of the volume; nothing is wiped"}},
		{"volume accept-loss data-1 --dry-run", []string{"would be refused now", "no data loss is awaiting approval"}},
		{"volume release data-1 --dry-run", []string{"would be refused now", "none of its drives has to leave"}},
		{"volume retry data-1 --dry-run", []string{"would be refused now", "no failure to retry"}},
		{"volume snapshot-delete snap-1 --dry-run", []string{"would: delete the snapshot of volume "}},
		{"volume snapshot-forget snap-1 --dry-run", []string{"would be refused now", "is ONLINE", "and wipe nothing"}},
		{"volume expand data-1 2Gi --dry-run", []string{"would: grow the volume from 1 GiB to 2 GiB on drive " + on.ID, "would: leave its filesystem as it is until it is mounted the next time"}},
		{"volume expand data-1 999Ti --dry-run", []string{"would be refused now: ", "it can have "}},
		{"volume expand data-1 1 --dry-run", []string{"would: do nothing: the volume has 1 GiB"}},
	} {
		out, errs, code := call(t, r.env, strings.Fields(tc.args)...)
		if code != exitOK {
			t.Errorf("%s: exit %d, %s", tc.args, code, errs)
		}
		for _, w := range append(tc.want, "dry run, nothing is changed") {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q is not in\n%s", tc.args, w, out)
			}
		}
	}
	d, v, e := state()
	if !reflect.DeepEqual(d, drives) || v != volumes || e != events {
		t.Errorf("a dry run changed something: %v, %v; %d events, %d\n%s\n%s", drives, d, events, e, volumes, v)
	}
}

// TestDryRunsKnowTheRoom: where no other drive has room, a dry run says so in the words of the command itself,
// for volumes of every backing.
func TestDryRunsKnowTheRoom(t *testing.T) {
	r, client := rack(t, 3, "--claim", "all")
	do := func(args string) string {
		t.Helper()
		out, errs, code := call(t, r.env, strings.Fields(args)...)
		if code != exitOK {
			t.Fatalf("%s: exit %d, %s", args, code, errs)
		}
		return strings.TrimSpace(out)
	}
	for _, args := range []string{"volume create data-1 --size 1GiB --class hdd", "volume create lv-1 --size 1GiB --backing lvm --class hdd"} {
		do(args)
	}
	volumes := map[string]*drivebay.VolumeView{}
	dry := func(name string) string { return do("release " + volumes[name].Location.Drives[0] + " --dry-run") }
	for _, name := range []string{"data-1", "lv-1"} {
		v, err := client.Volume(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		volumes[name] = &v.VolumeView
		if out := dry(name); !strings.Contains(out, "volume "+v.ID+" ("+name+") of 1 GiB to drive ") {
			t.Errorf("%s, with room:\n%s", name, out)
		}
	}
	for i := range 20 { // all space that is left
		c, err := client.Capacity(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Largest < 1<<30 {
			break
		}
		do(fmt.Sprintf("volume create fill-%d --size %d", i, c.Largest))
	}
	released := map[string]int{}
	for name, v := range volumes {
		if out := dry(name); !strings.Contains(out, "would: wait for volume "+v.ID+" ("+name+") of 1 GiB, which cannot move now: ") {
			t.Errorf("%s, without room:\n%s", name, out)
		}
		_, refusal, code := call(t, r.env, "volume", "expand", name, "90TiB")
		if code == exitOK {
			t.Fatalf("%s was expanded", name)
		}
		_, refusal, _ = strings.Cut(strings.TrimSpace(refusal), v.ID+": ")
		if out := do("volume expand " + name + " 90TiB --dry-run"); refusal == "" || !strings.Contains(out, "would be refused now: "+refusal) {
			t.Errorf("%s: refused with %q, and the dry run says\n%s", name, refusal, out)
		}
		waits := dry(name)
		if released[v.Location.Drives[0]]++; released[v.Location.Drives[0]] == 1 {
			do("release " + v.Location.Drives[0])
		}
		eventually(t, patience, func() bool {
			d, err := client.Drive(t.Context(), v.Location.Drives[0])
			return err == nil && d.Leaving != nil && sameRefusal(waits, d.Leaving.Cause)
		}, func() string {
			d, _ := client.Drive(t.Context(), v.Location.Drives[0])
			return fmt.Sprintf("%s\n%+v", waits, d.Leaving)
		})
	}
	for drive := range released {
		if out := do("release " + drive + " --dry-run"); !strings.Contains(out, "would be refused now: drive usage RELEASING") {
			t.Errorf("a drive that is being released:\n%s", out)
		}
		if out := do("replace " + drive + " --dry-run"); strings.Contains(out, "refused") {
			t.Errorf("a replacement that continues:\n%s", out)
		}
	}
}

// sameRefusal reports whether a dry run gives the cause for which a drive waits.
func sameRefusal(dry, cause string) bool {
	for _, text := range []string{"no other drive of its class has room for it", "no spare: "} {
		if strings.Contains(cause, text) {
			return strings.Contains(dry, text)
		}
	}
	return false
}

// TestDestructiveCommandsTakeWholeNames: the beginning of a name is enough to look at a drive or a
// volume, and not to remove, forget or delete one.
func TestDestructiveCommandsTakeWholeNames(t *testing.T) {
	snap := twoDrives()
	e := newEngine(snap)
	env := daemonFor(t, e)
	for args, want := range map[string]string{
		"drive show naa-aaaa":    "it names naa-aaaa01 (sd1, bay Slot 1, serial SN1), naa-aaaa02 (sd2, bay Slot 2, serial SN2): give the ID",
		"approve naa-aaaa --yes": "it is only the beginning of naa-aaaa01 (sd1, bay Slot 1, serial SN1), naa-aaaa02",
	} {
		if _, errs, code := call(t, env, strings.Fields(args)...); code != exitFailure || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
	snap.Drives = snap.Drives[:1]
	snap.Seq = 2
	e.snap.Store(&snap)
	e.done = nil
	for _, args := range []string{"approve naa-aaaa --yes", "approve naa-aaaa", "forget naa-aaaa", "force-remove naa-aaaa --yes --lose-all", "replace naa-aaaa --yes"} {
		if _, errs, code := call(t, env, strings.Fields(args)...); code != exitFailure || len(e.done) > 0 || !strings.Contains(errs, "it is only the beginning of naa-aaaa01 (sd1, bay Slot 1, serial SN1): give the whole ID or name") {
			t.Errorf("%s: exit %d, did %q, %s", args, code, e.done, errs)
		}
	}
	if out, errs, code := call(t, env, "drive", "show", "naa-aaaa"); code != exitOK || !strings.Contains(out, "naa-aaaa01") {
		t.Errorf("the beginning of the only ID: exit %d, %s", code, errs)
	}
}
