package hostsim

import "hash/fnv"

// identity distinguishes a drive from others.
type identity struct {
	vendor, model, serial string
	wwn                   uint64 // NAA 5; for NVMe the EUI-64 part of the NGUID
}

// wwnOf returns an NAA 5 name: the company and a hash of the seed, so that it is the same at every
// start.
func wwnOf(k *kind, seed string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(seed))
	return 5<<60 | k.oui<<36 | h.Sum64()&(1<<36-1)
}

func fallbackSerial(k *kind) string {
	if k.name == KindNVMe {
		return "S64HNE0R{n}"
	}
	return "ZR5SIM{n}"
}
