// Package repair diagnoses volumes that cannot be used and repairs them by a table of repairs,
// none of which can lose data. It also has the verbs of an operator for a volume that failed.
package repair
