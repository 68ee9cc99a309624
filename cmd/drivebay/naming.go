package main

import "github.com/drivebay/drivebay/internal/api"

// naming says how the arguments of commands name things: Lookup of a snapshot and of a set of volumes.
const naming = "\n\nDRIVE is the ID of a drive; its kernel name, device path or link below /dev/disk/by-id, its serial\n" +
	"number or its WWN; its bay (13, 'Slot 13', 'bay 13', or ENCLOSURE/13); or the beginning of its ID or\n" +
	"serial number, from 4 characters on. Where a text means several drives, the first of these ways\n" +
	"counts, and two drives in the same way are an error that lists them. VOLUME and SNAPSHOT are an ID,\n" +
	"a name, or the beginning of either. Commands that cannot be undone refuse the beginning of a name,\n" +
	"and a text that means different drives in different ways."

// completionClient returns the client that completes arguments; nil with --local and --root, where
// reading the drives takes too long.
func (a *app) completionClient() *api.Client {
	if a.local || a.root != "" {
		return nil
	}
	return a.dial()
}
