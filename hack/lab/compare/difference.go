package compare

import "fmt"

// nothing is what stands where one side has no value.
const nothing = "nothing"

// Difference is one fact on which two witnesses disagree.
type Difference struct {
	Path     string // where: a path in smartctl's document, or a drive's serial and its field
	Smartctl string // what smartctl, or the description of the machine, says
	Ours     string // what drivebay published
}

func (d Difference) String() string {
	where := d.Path
	if where == "" {
		where = "the whole document"
	}
	return fmt.Sprintf("%s: want %q, ours %q", where, d.Smartctl, d.Ours)
}
