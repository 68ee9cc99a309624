package content

import "encoding/binary"

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)
