// Package crypt simulates dm-crypt and cryptsetup(8).
//
// A device opened with a passphrase is a mapped device whose pages are combined with a pad of the key, so
// that old data below reads as noise. The header and its key slots are in package content.
package crypt
