//go:build race

package condition

// randomVolumes is smaller under the race detector: the decisions are made by one goroutine.
const randomVolumes = 500
