package volume

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// Repair is a row of the table of repairs. The words are for people.
type Repair struct {
	Name string
	When string // when it is called for
	Does string // what is done
	Not  string // when it is called for and not done
	// Safe repairs write nothing to what users have, and unmount nothing that anybody
	// can still use: the daemon may do them on its own.
	Safe bool

	// need says why a repair is called for, and why it is not to be done all the
	// same. It is decided by the signs alone.
	need func(*signs) (why string, cannot error)
	do   func(context.Context, *patient) error
	// done says that it shows: by the signs before and after.
	done func(before, after *signs) bool
}

// noMore is the proof of most repairs: they are not called for any more.
func noMore(need func(*signs) (string, error)) func(_, after *signs) bool {
	return func(_, after *signs) bool { why, _ := need(after); return why == "" }
}

// repairs are in the order in which they are done: from the mounts that are in the
// way, over the device, to the mounts that are wanted.
var repairs = []Repair{
	{
		Name: "let go of dead mounts",
		When: "a path shows a device that went, and the drive is back as another one",
		Does: "what is dead was unmounted, without force",
		Not:  "somebody still has a file open there: his container has to end first; or the drive that is back does not answer a read",
		Safe: true,
		need: needLetGo, do: letGo, done: noMore(needLetGo),
	}, {
		Name: "take mirror legs back",
		When: "a drive of a mirror was away or has failed a write, and is here and sound again",
		Does: "the leg was taken back; what it missed is copied to it meanwhile, and all of it where the kernel would copy the other way",
		Not:  "the drive is BAD",
		Safe: true,
		need: needLegs, do: takeBack, done: noMore(needLegs),
	}, {
		Name: "activate the logical volume",
		When: "a volume that is in use has no device, leads to one that went, or is suspended",
		Does: "its device is there again",
		Not:  "its thin pool has failed",
		Safe: true,
		need: needActive, do: makeActive, done: noMore(needActive),
	}, {
		Name: "extend the metadata of the thin pool",
		When: fmt.Sprintf("%d %% of its metadata space are used, or more, and its group has free extents", poolLow),
		Does: "it has twice as much of it, or what was free in its group",
		Not:  "the group has no free extent",
		Safe: true,
		need: needMetadata, do: extendMetadata, done: func(before, after *signs) bool { return after.room < before.room },
	}, {
		Name: "extend the thin pool",
		When: fmt.Sprintf("%d %% of its data space are used, or more, and its group has free extents", poolLow),
		Does: "the pool has what was free in its group",
		Not:  "the group has no free extent, which is the rule: a pool of ours has all of its group from the beginning",
		Safe: true,
		need: needRoom, do: extendPool, done: func(before, after *signs) bool { return after.room < before.room },
	}, {
		Name: "unlock the volume",
		When: "an encrypted volume that is in use is locked",
		Does: "it is unlocked, with the passphrase that came with the call",
		Not:  "there is no passphrase, or another one: the healing ends there",
		need: needKey, do: unlockAgain, done: noMore(needKey),
	}, {
		Name: "repair the filesystem",
		When: "that was asked for",
		Does: "its own program has repaired what it repairs unasked, and a check came after it",
		Not:  "somebody has it mounted; and never a btrfs, whose program may make it worse (btrfs-check(8))",
		need: needFsck, do: fsck, done: func(_, after *signs) bool { return !after.corrupt() },
	}, {
		Name: "mount a filesystem again that gave up",
		When: "it turned read-only or shut down without being asked to",
		Does: "it was unmounted everywhere and mounted again, which has it read its journal, and is being checked",
		Not:  "a drive is BAD, takes no writes or does not answer a read; a check has called it corrupted; the pool is full; another program has it mounted or in use",
		need: needFresh, do: mountAfresh, done: noMore(needFresh),
	}, {
		Name: "mount the filesystem",
		When: "it is staged by what is remembered, and not mounted there",
		Does: "it is mounted there again, as it was",
		Not:  "something else is mounted there; a check has called it corrupted; or it was mounted with options that the call does not bring",
		Safe: true,
		need: needStaged, do: stageAgain, done: noMore(needStaged),
	}, {
		Name: "bind the paths of pods",
		When: "it is published by what is remembered, and not to be seen there",
		Does: "it is to be seen there again, read-only where it was. A container that runs keeps what it had: it sees this after its next start",
		Not:  "something else is mounted there",
		Safe: true,
		need: needBound, do: bindAgain, done: noMore(needBound),
	},
}

const repairIntro = `# Repairs

This page is written by the program from its own table of repairs; change the table, not the page.

` + "`drivebay heal VOLUME`" + ` and the CSI-Addons call NodeHealer go through these rows in this order. Each is done only if it is called
for by what is seen right before; nothing that any of them does can lose data, and nothing is unmounted by force. With
` + "`--dry-run`" + ` the rows are told that are called for now. Every repair that was done is an event, ` + "`VolumeHealed`" + `, with its cause and what came of it.

With ` + "`healing.policy: safe`" + ` in the configuration the daemon does the rows by itself that say so in the last column: they write nothing to what users
have, and unmount nothing that anybody can still use. It looks every ten seconds, and begins when two looks in a row call for the same. A row that is
not its to do ends that healing. A volume that needs it again waits: half a minute after the first healing, and twice as long after each further one, up
to an hour, until it needed none for four hours. Volumes whose data are being moved to another drive are left alone. What could not be done is an event, ` + "`VolumeNotHealed`" + `, once
for each cause.

| repair | called for when | after it | not done when | by itself |
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
