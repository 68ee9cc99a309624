// Package luks makes and opens encrypted volumes, keeps copies of their headers, and changes their
// passphrases. A passphrase is never stored.
package luks
