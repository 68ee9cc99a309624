// Package tracking compares each listing of the machine with the drives that are known: which
// came, left, moved to another bay or are copies of each other.
package tracking
