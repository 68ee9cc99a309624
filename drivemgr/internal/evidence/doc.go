// Package evidence reads the health pages and the content of one drive.
package evidence
