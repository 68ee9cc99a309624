//go:build !race

package condition

// randomVolumes is how many volumes get random faults.
const randomVolumes = 5000
