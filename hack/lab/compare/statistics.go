package compare

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
)

const statisticPages = "ata_device_statistics.pages[]."

// statisticRows are those of the device statistics log. Its entries have names
// of their own (ACS-4, 9.5): where an entry stands is found by what it is called,
// and what it is called by where it stands.
var statisticRows = []row{
	{statisticPages + "number", ofATA(pageNumber)},
	{statisticPages + "table[].offset", called(func(s drivebay.Statistic) any { return s.Offset })},
	{statisticPages + "table[].name", ofATA(nameThere)},
	{statisticPages + "table[].value", called(func(s drivebay.Statistic) any { return s.Value })},
	{statisticPages + "table[].flags.normalized", called(func(s drivebay.Statistic) any { return s.Normalized })},
	{statisticPages + "table[].flags.valid", ofATA(func(a *drivebay.ATA, l *leaf) any {
		_, there := byName(a, l.beside("name"))
		return there
	})},
}

const unvouched = "a statistic that the drive does not vouch for is not kept"

// invalid reports whether the entry of a leaf is such a one.
func invalid(_ *drivebay.Drive, l *leaf) bool { return l.beside("flags.valid") == "false" }

func byName(a *drivebay.ATA, name string) (drivebay.Statistic, bool) {
	i := slices.IndexFunc(a.Statistics, func(s drivebay.Statistic) bool { return s.Name == name })
	if i < 0 {
		return drivebay.Statistic{}, false
	}
	return a.Statistics[i], true
}

// called hands on our statistic of the name that stands beside a leaf.
func called(ours func(s drivebay.Statistic) any) func(*drivebay.Drive, *leaf) any {
	return ofATA(func(a *drivebay.ATA, l *leaf) any {
		s, there := byName(a, l.beside("name"))
		if !there {
			return nil
		}
		return ours(s)
	})
}

// nameThere is the name of our statistic at the place that stands beside a leaf.
func nameThere(a *drivebay.ATA, l *leaf) any {
	page, offset := l.doc.text(fmt.Sprintf("ata_device_statistics.pages[%d].number", l.index(0))), l.beside("offset")
	for _, s := range a.Statistics {
		if fmt.Sprint(s.Page) == page && fmt.Sprint(s.Offset) == offset {
			return s.Name
		}
	}
	return nil
}

// pageNumber is the page on which we have the first entry that is valid. A page
// without one holds nothing to compare its number by.
func pageNumber(a *drivebay.ATA, l *leaf) any {
	entry := fmt.Sprintf("ata_device_statistics.pages[%d].table[%%d].%%s", l.index(0))
	for i := 0; l.doc.at[fmt.Sprintf(entry, i, "name")] != nil; i++ {
		if l.doc.text(fmt.Sprintf(entry, i, "flags.valid")) != "true" {
			continue
		}
		if s, there := byName(a, l.doc.text(fmt.Sprintf(entry, i, "name"))); there {
			return s.Page
		}
		return nil
	}
	return l.text
}
