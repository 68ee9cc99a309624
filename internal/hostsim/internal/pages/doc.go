// Package pages encodes what a drive answers: the pages of ATA, NVMe and SCSI, as the specifications
// define them, and the results of self-tests.
//
// A State holds all that the pages show; the package knows nothing of block devices. Each command set has
// a type of its own over the state, with a table from the page to its encoder. Spoilt says what is wrong
// with the pages beyond the age of the drive.
package pages
