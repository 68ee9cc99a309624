// Package adopt finds volumes that are on drives and in no record, and takes them into the
// records.
package adopt
