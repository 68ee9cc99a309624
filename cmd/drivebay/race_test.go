//go:build race

package main

// slack is how much slower than a user's the program under the race detector may be.
const slack = 10
