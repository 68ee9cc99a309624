// Package compare holds what drivebay published of a machine against three other
// witnesses: smartctl and smart.go, which asked the same drives, and the description
// of the machine that the drives were built from.
//
// It reads smartctl's document by itself: a mistake in our own reader of such
// documents cannot hide one in our reading of the drive.
package compare
