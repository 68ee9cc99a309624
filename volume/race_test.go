//go:build race

package volume_test

// stride leaves out four of five kills: to the race detector they are all the same
// code, and it takes six times as long. Without it none is left out.
const stride = 5
