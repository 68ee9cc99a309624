// Package drivebay is the dictionary: the words every other package speaks.
//
// It holds what a drive is, what was read from it, what is thought of it and
// why, and nothing that does anything. It imports the standard library only, so
// that a page of JSON, a metric and a rule all mean the same thing by "SUSPECT".
package drivebay
