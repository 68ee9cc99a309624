// Package identity gives every drive an id that stays the same when the drive moves to
// another bay, another controller or another machine.
//
// An id is made of the worldwide name where the drive has one, else of model and serial. A
// drive without either is known by its place, and no two drives share an id.
package identity
