// Package write changes partition tables and volume groups. Before each change it reads the table
// or the report again, and compares it with the records.
package write
