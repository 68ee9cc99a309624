package main

import (
	"fmt"
	"slices"
	"strings"
)

// allowed holds phrases of the licenses that a module of drivebay may have, by their SPDX identifiers.
var allowed = []struct{ id, phrase string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"Apache-2.0", "licensed under the apache license, version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "neither the name of"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
}

// forbidden holds phrases of licenses that may not be part of drivebay, whatever else their file
// says: they would apply to all of drivebay, or limit its use.
var forbidden = []string{
	"gnu general public license", "gnu lesser general public license", "gnu library general public license", "gnu affero general public license",
	"server side public license", "business source license", "elastic license", "commons clause", "creative commons", "noncommercial", "common development and distribution license",
}

// identify returns the licenses that a text contains. A text with an unknown license is an error: a
// person has to read it, and to add it to one of the tables.
func identify(text string) ([]string, error) {
	words := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, phrase := range forbidden {
		if strings.Contains(words, phrase) {
			return nil, fmt.Errorf("the license is forbidden (%q)", phrase)
		}
	}
	var found []string
	for _, l := range allowed {
		if l.id == "BSD-2-Clause" && len(found) > 0 && found[len(found)-1] == "BSD-3-Clause" {
			continue // its text contains that of the other one
		}
		if strings.Contains(words, l.phrase) && !slices.Contains(found, l.id) {
			found = append(found, l.id)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the license is unknown: it begins %.60q", words)
	}
	return found, nil
}
