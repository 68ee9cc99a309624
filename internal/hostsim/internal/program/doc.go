// Package program is what the simulated programs share: arguments, input, output and exit status.
//
// Getopt parses options as getopt_long(3) does, so that a mistake in an argument is found. A Process finds
// block devices by the names that a program is called with.
package program
