// Package tracking compares each listing of the machine with the known drives: it finds drives that
// appeared, vanished, moved to another bay or are copies of each other.
package tracking
