package emul

import (
	"fmt"
	"maps"
	"slices"
)

// Counts is what commands a device got.
type Counts struct {
	Total uint64 `json:"total"`
	// By holds the number of each kind; see Key.
	By map[string]uint64 `json:"by"`
	// Last are the last commands, the newest at the end.
	Last []string `json:"last"`
}

// lastKept is how many commands are kept in order.
const lastKept = 256

// Key names the kind of a command: "scsi 28" by its operation code, or what is
// passed through to an ATA drive by command and, where there are some, feature or
// log: "ata e5", "ata b0 d0", "ata 2f 04".
func Key(cdb []byte) string {
	if len(cdb) == 0 {
		return "none"
	}
	if cdb[0] != 0x85 && cdb[0] != 0xa1 {
		return fmt.Sprintf("scsi %02x", cdb[0])
	}
	full := make([]byte, 16)
	copy(full, cdb)
	switch t := parsePassThrough(full); t.command {
	case ataSMART:
		return fmt.Sprintf("ata %02x %02x", t.command, byte(t.feature))
	case ataReadLogExt:
		return fmt.Sprintf("ata %02x %02x", t.command, byte(t.lba))
	default:
		return fmt.Sprintf("ata %02x", t.command)
	}
}

func (c *Counts) add(key string) {
	if c.By == nil {
		c.By = map[string]uint64{}
	}
	c.Total++
	c.By[key]++
	if len(c.Last) == lastKept {
		c.Last = slices.Delete(c.Last, 0, 1)
	}
	c.Last = append(c.Last, key)
}

func (c Counts) clone() Counts {
	return Counts{Total: c.Total, By: maps.Clone(c.By), Last: slices.Clone(c.Last)}
}
