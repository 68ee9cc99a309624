package repair

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// Repair is a row of the table of repairs. Its texts are shown to people.
type Repair struct {
	Name string
	When string // when the repair is needed
	Does string // what it does
	Not  string // when it is needed and not done
	// Safe repairs write nothing to users' data, and unmount nothing that can still be
	// used: the daemon may do them by itself.
	Safe bool

	// need returns why the repair is needed ("" if it is not), and why it must not be
	// done all the same. It decides by the symptoms alone.
	need func(*symptoms) (why string, cannot error)
	do   func(context.Context, *diagnosis) error
	// done reports whether the repair worked, by the symptoms before and after it.
	done func(before, after *symptoms) bool
}

// noMore returns the proof of most repairs: the repair is not needed any more.
func noMore(need func(*symptoms) (string, error)) func(_, after *symptoms) bool {
	return func(_, after *symptoms) bool { why, _ := need(after); return why == "" }
}

// repairs holds the repairs in the order in which they are done: first dead mounts, then
// the device, then the mounts that are wanted.
var repairs = []Repair{
	{
		Name: "unmount dead mounts",
		When: "a path shows a device that is gone, and the drive is back as another device",
		Does: "the dead mounts were unmounted, without force",
		Not:  "a file is still open there: stop the container that uses it first; or the drive that is back does not answer a read",
		Safe: true,
		need: needLetGo, do: letGo, done: noMore(needLetGo),
	}, {
		Name: "restore mirror legs",
		When: "a drive of a mirror was absent or failed a write, and is present and works again",
		Does: "the leg was restored; the data that it missed is being copied to it, or all data where the kernel would copy in the other direction",
		Not:  "the drive is BAD",
		Safe: true,
		need: needLegs, do: takeBack, done: noMore(needLegs),
	}, {
		Name: "activate the logical volume",
		When: "the device of a volume that is in use is missing, leads to a device that is gone, or is suspended",
		Does: "the logical volume has its device again",
		Not:  "the thin pool of the volume has failed",
		Safe: true,
		need: needActive, do: makeActive, done: noMore(needActive),
	}, {
		Name: "attach the disk of a replicated volume",
		When: "DRBD has no disk of the volume, because a drive was gone or failed a request, and the drive is present and works again",
		Does: "the disk was attached; the peer sends what it missed",
		Not:  "the drive is BAD: make this side again on another drive (docs/replication.md, When a drive fails)",
		Safe: true,
		need: needDisk, do: attachDisk, done: noMore(needDisk),
	}, {
		Name: "extend the metadata of the thin pool",
		When: fmt.Sprintf("at least %d %% of the metadata space of the pool is used, and its volume group has free extents", poolLow),
		Does: "the metadata space was doubled, or extended by the free extents of the volume group",
		Not:  "the volume group has no free extent",
		Safe: true,
		need: needMetadata, do: extendMetadata, done: func(before, after *symptoms) bool { return after.room < before.room },
	}, {
		Name: "extend the thin pool",
		When: fmt.Sprintf("at least %d %% of the data space of the pool is used, and its volume group has free extents", poolLow),
		Does: "the pool was extended by the free extents of the volume group",
		Not:  "the volume group has no free extent, which is the normal case: a pool of drivebay has all extents of its volume group from the start",
		Safe: true,
		need: needRoom, do: extendPool, done: func(before, after *symptoms) bool { return after.room < before.room },
	}, {
		Name: "unlock the volume",
		When: "an encrypted volume that is in use is locked",
		Does: "the volume was unlocked with the passphrase of the call",
		Not:  "the call has no passphrase, or a wrong one: the healing ends there",
		need: needKey, do: unlockAgain, done: noMore(needKey),
	}, {
		Name: "repair the filesystem",
		When: "the call requests it",
		Does: "the repair program of the filesystem repaired what it can repair without questions, and a check followed",
		Not:  "the filesystem is mounted; a btrfs is never repaired, because its repair program may make it worse (btrfs-check(8))",
		need: needFsck, do: fsck, done: func(_, after *symptoms) bool { return !after.corrupt() },
	}, {
		Name: "mount a failed filesystem again",
		When: "the filesystem turned read-only or shut down, and no caller requested that",
		Does: "the filesystem was unmounted everywhere and mounted again, which replays its journal, and is being checked",
		Not:  "a drive is BAD, accepts no writes or does not answer a read; a check found the filesystem corrupted; the pool is full; another program has the filesystem mounted or in use",
		need: needFresh, do: mountAfresh, done: noMore(needFresh),
	}, {
		Name: "mount the filesystem",
		When: "the volume is staged according to its record, and its filesystem is not mounted at the staging path",
		Does: "the filesystem was mounted there again, as before",
		Not:  "something else is mounted there; a check found the filesystem corrupted; or it was mounted with mount options that the call does not have",
		Safe: true,
		need: needStaged, do: stageAgain, done: noMore(needStaged),
	}, {
		Name: "restore the bind mounts of pods",
		When: "the volume is published according to its record, and the path does not show it, or is read-only although the pod may write (by command only: it can still be read)",
		Does: "the path shows the volume again, read-only where it was. A container that runs keeps its old view: it sees the volume after its next start",
		Not:  "something else is mounted there",
		Safe: true,
		need: needBound, do: bindAgain, done: noMore(needBound),
	},
}

const repairIntro = `# Repairs

This page is generated from the program's table of repairs; change the table, not the page.

` + "`drivebay heal VOLUME`" + ` and the CSI-Addons call NodeHealer go through these repairs in this order. Each repair is done only if the state of the volume
right before it requires the repair. No repair can lose data, and no repair unmounts by force. With ` + "`--dry-run`" + ` the command lists the repairs that
are needed now. Every repair that was done is an event, ` + "`VolumeHealed`" + `, with its cause and its result.

With ` + "`healing.policy: safe`" + ` in the configuration, the daemon does the repairs that have "yes" in the last column automatically: they write nothing to the
data of users, and unmount nothing that can still be used. The daemon checks the volumes every 10 s, and starts when two checks in a row find the same
needs. A needed repair that the daemon must not do by itself ends that healing. A volume that needs healing again waits: 30 s after the first healing, and
twice as long after each further one, up to 1 h, until it needed none for 4 h. Volumes whose data is being moved to another drive are left alone. A repair
that could not be done is an event, ` + "`VolumeNotHealed`" + `, once for each cause.

| repair | needed when | result | not done when | automatic |
|---|---|---|---|---|
`

// RepairMarkdown writes the reference page of the repairs.
func RepairMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString(repairIntro)
	for i := range repairs {
		r := &repairs[i]
		alone := "no"
		if r.Safe {
			alone = "yes"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", r.Name, r.When, r.Does, r.Not, alone)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("page of repairs: %w", err)
	}
	return nil
}
