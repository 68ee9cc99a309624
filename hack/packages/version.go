package main

import (
	"regexp"
	"strings"
	"time"
)

// described matches the output of git describe --tags --always --dirty for a commit below a tag.
var described = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-([a-z]+[.0-9]*))?(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)

// version returns the version of a package, in the order of deb-version(7) and of rpm: a release
// candidate before the release, a commit after the tag below it, and a commit without a tag before
// all, by its time.
func version(text string, commit time.Time) string {
	m := described.FindStringSubmatch(text)
	if m == nil {
		return "0.0.0+" + commit.Format("20060102T150405") + "." + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '.'
		}, text)
	}
	v := m[1]
	if m[2] != "" {
		v += "~" + m[2]
	}
	if m[3] != "" {
		v += "+" + m[3] + "." + m[4]
	}
	return v + strings.Replace(m[5], "-", "+", 1)
}
