// Package model says what drives are: their kinds with the properties that all drives of a kind share,
// the identity of one drive, and its age.
//
// Age is what a description says; Counters are the same in the units of the pages. Sizes and ranges of
// bays are parsed here.
package model
