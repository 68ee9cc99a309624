package drivebay

// Mirror records which leg of a mirror holds everything. LVM and the kernel activate a
// leg that missed writes like any other, and a leg does not know what it missed. So the
// daemon stores it before a leg is used alone, and as soon as it notices that a leg is lost.
type Mirror struct {
	// Current is the drive whose leg alone holds everything; empty: all legs do.
	Current string `json:"current,omitempty"`
	// Boot is the boot id of the machine when the mirror was activated; empty: it was
	// deactivated with all legs equal, or the superblock of Current says that it served alone.
	Boot string `json:"boot,omitempty"`
	// Doubt is why it is not known which leg holds everything.
	Doubt string `json:"doubt,omitempty"`
	// Divided is true if each leg was used without the other one.
	Divided bool `json:"divided,omitempty"`
	// Accepted is true if an operator chose Current: newer data on another leg are given
	// up.
	Accepted bool `json:"accepted,omitempty"`
}
