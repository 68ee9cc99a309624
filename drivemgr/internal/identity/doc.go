// Package identity gives every drive an id that stays the same when the drive moves to
// another bay, another controller or another machine.
//
// An id consists of the world-wide name if the drive has one, otherwise of model and serial. The
// place of the drive identifies a drive without either. No two drives have the same id.
package identity
