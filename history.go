package drivebay

import "time"

// HistoryPoint is what was measured of a drive at one time. A nil value was not measured.
type HistoryPoint struct {
	At          time.Time `json:"at"`
	Temperature *int64    `json:"temperature,omitempty"` // degrees Celsius; the highest of the interval
	PercentUsed *int64    `json:"percentUsed,omitempty"` // rated endurance of a solid-state drive; 100 is all of it
	Reallocated *int64    `json:"reallocated,omitempty"` // reallocated sectors, or grown defects
	MediaErrors *int64    `json:"mediaErrors,omitempty"` // reads that the drive could not correct
	Latency     *int64    `json:"latency,omitempty"`     // microseconds from the kernel's queue to the completion of a request; the mean of the interval in which it was longest
}

// HistoryChunk is a part of the history of one drive as it is stored. The points in it are encoded.
type HistoryChunk struct {
	Drive string
	Level HistoryLevel
	Start time.Time // of the first point, in whole seconds
	Data  []byte
}

// HistoryLevel is the resolution of a chunk.
type HistoryLevel uint8

const (
	HistoryFine   HistoryLevel = iota // as measured
	HistoryCoarse                     // one point an hour, a chunk a day
	HistoryLevels                     // the number of levels
)
