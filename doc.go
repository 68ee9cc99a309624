// Package drivebay is the dictionary: the types that all other packages share.
//
// It defines drives and volumes, what was read from them, the verdicts and their
// reasons. It touches no device. It imports the standard library only, so that JSON,
// a metric and a rule all mean the same thing by "SUSPECT".
package drivebay
