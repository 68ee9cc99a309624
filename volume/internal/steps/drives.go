package steps

import (
	"slices"
	"sort"

	"github.com/drivebay/drivebay"
)

// Shrank reports whether one of the drives has fewer bytes than it should.
func (e *Runner) Shrank(drives []string) bool {
	s := e.Drives.Snapshot()
	return slices.ContainsFunc(drives, func(id string) bool {
		d, ok := DriveOf(s, id)
		return ok && d.SizeIssue != ""
	})
}

// DriveOf finds a drive by its id; a snapshot has its drives in the order of their ids.
func DriveOf(s *drivebay.Snapshot, id string) (*drivebay.Drive, bool) {
	i := sort.Search(len(s.Drives), func(i int) bool { return s.Drives[i].ID >= id })
	if i == len(s.Drives) || s.Drives[i].ID != id {
		return nil, false
	}
	return &s.Drives[i], true
}

// Our volumes on drives that are not claimed here came with their drives from another machine,
// or lost their claim with the store. They are shown, and nothing is done to them until their
// drives are claimed or an operator adopts them.

// Unclaimed returns those drives that are not claimed.
func Unclaimed(s *drivebay.Snapshot, drives []string) []string {
	return slices.DeleteFunc(slices.Clone(drives), func(id string) bool {
		d, known := DriveOf(s, id)
		return known && d.Claim != nil
	})
}

// SameWork reports whether a record has the work that was interrupted. While ResumeWork waited, the
// work may have ended, and a new volume with the id may have work of its own.
func SameWork(is, was *drivebay.Work) bool {
	return is != nil && is.Op == was.Op && is.Since.Equal(was.Since)
}
