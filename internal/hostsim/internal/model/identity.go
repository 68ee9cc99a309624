package model

import "hash/fnv"

// Identity distinguishes a drive from others.
type Identity struct {
	Vendor, Model, Serial string
	WWN                   uint64 // NAA 5; for NVMe the EUI-64 part of the NGUID
}

// WWN returns an NAA 5 name: the company and a hash of the seed, so that it is the same at every
// start.
func WWN(k *Properties, seed string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(seed))
	return 5<<60 | k.OUI<<36 | h.Sum64()&(1<<36-1)
}

func DefaultSerial(k *Properties) string {
	if k.Name == KindNVMe {
		return "S64HNE0R{n}"
	}
	return "ZR5SIM{n}"
}
