// Package kernel is what all parts of a simulated machine share: its lock, its clock, its tree of files,
// the events that it sends, its log, and the programs and modules that it lacks.
//
// The lock guards the whole machine: every room above takes it for each call. A feed sends events or log
// lines to its listeners without waiting for them, and loses messages as a netlink socket does.
//
// A ManualClock moves only when a test moves it.
package kernel
