// Package instances tells the volumes of one id apart: the one in the record, an older one on a
// drive that was away, and those that were deleted or forgotten.
package instances
