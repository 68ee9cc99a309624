// Package mounttable reads the mount table of the machine, and answers what is mounted where.
package mounttable
