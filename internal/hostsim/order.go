package hostsim

import "encoding/binary"

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)
