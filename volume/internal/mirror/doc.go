// Package mirror decides which leg of a mirrored volume has the newest data, and activates no
// other. A leg that was left out is taken back only when nothing is lost by it.
package mirror
