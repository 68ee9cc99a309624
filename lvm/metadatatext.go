package lvm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// This file edits the metadata text of a volume group for Salvage.

// block is a section of the text, from line begin to before line end.
type block struct {
	path       string // "t/logical_volumes/a"
	begin, end int
	id         string
}

func (b *block) parent() string { return b.path[:max(0, strings.LastIndexByte(b.path, '/'))] }
func (b *block) name() string   { return b.path[strings.LastIndexByte(b.path, '/')+1:] }

// blocks returns the sections of a text as LVM writes it: "name {" and "}" have their own
// lines.
func blocks(lines []string) (out []block, err error) {
	var open []int
	for i, line := range lines {
		word := strings.TrimSpace(line)
		name, opens := strings.CutSuffix(word, " {")
		switch {
		case opens:
			path := name
			if len(open) > 0 {
				path = out[open[len(open)-1]].path + "/" + name
			}
			open = append(open, len(out))
			out = append(out, block{path: path, begin: i})
		case word == "}" && len(open) == 0:
			return nil, fmt.Errorf("%w: metadata text, line %d: \"}\" without a section", drivebay.ErrRefused, i+1)
		case word == "}":
			out[open[len(open)-1]].end = i + 1
			open = open[:len(open)-1]
		case len(open) > 0:
			if id, is := strings.CutPrefix(word, "id = "); is {
				out[open[len(open)-1]].id = strings.Trim(id, `"`)
			}
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%w: metadata text: section %s has no end", drivebay.ErrRefused, out[open[0]].path)
	}
	return out, nil
}

// without returns the metadata text of a group without the lost volumes, a physical volume and
// the move under way. It refuses a text whose other sections name any of them.
func without(text string, g *Group, lost []string, pv string) (string, error) {
	lines := strings.Split(text, "\n")
	if !slices.Contains(lines, fmt.Sprintf("\tseqno = %d", g.Seq)) {
		return "", fmt.Errorf("%w: the metadata text is not that of sequence number %d", drivebay.ErrRefused, g.Seq)
	}
	all, err := blocks(lines)
	if err != nil {
		return "", err
	}
	moving := g.moving()
	var names []string
	cut := make([]bool, len(lines))
	for _, b := range all {
		volume := b.parent() == g.Name+"/logical_volumes"
		if b.parent() == g.Name+"/physical_volumes" && b.id == pv || volume && (slices.Contains(lost, b.name()) || slices.Contains(moving, b.name())) {
			names = append(names, b.name())
			for i := b.begin; i < b.end; i++ {
				cut[i] = true
			}
		}
	}
	if want := len(lost) + len(moving) + 1; len(names) != want {
		return "", fmt.Errorf("%w: the metadata text has only %v of %v and of physical volume %s", drivebay.ErrRefused, names, lost, pv)
	}
	if len(moving) > 0 && g.LV(moving[0]).MovesFrom != pv {
		if err := resetToSource(lines, all, g.Name+"/logical_volumes/", moving[0]); err != nil {
			return "", err
		}
	}
	var left []string
	for i, line := range lines {
		if cut[i] {
			continue
		}
		for _, name := range names {
			if strings.Contains(line, `"`+name+`"`) {
				return "", fmt.Errorf("%w: the remaining metadata text names %s: %q", drivebay.ErrRefused, name, strings.TrimSpace(line))
			}
		}
		left = append(left, line)
	}
	return strings.Join(left, "\n"), nil
}

// piece is a run of extents of a volume with its place: `"pv0", 40`.
type piece struct {
	start, count, line int
	on                 string
	at                 int
}

var (
	startLine = regexp.MustCompile(`^\s*start_extent = (\d+)`)
	countLine = regexp.MustCompile(`^\s*extent_count = (\d+)`)
	onLine    = regexp.MustCompile(`^(\s*)"([^"]+)", (\d+)$`)
)

// pieceOf reads a segment that is in one piece on one device; ok is false for others.
func pieceOf(lines []string, b *block) (p piece, ok bool) {
	found := 0
	for i := b.begin; i < b.end; i++ {
		if m := startLine.FindStringSubmatch(lines[i]); m != nil {
			p.start, _ = strconv.Atoi(m[1])
		}
		if m := countLine.FindStringSubmatch(lines[i]); m != nil {
			p.count, _ = strconv.Atoi(m[1])
		}
		if m := onLine.FindStringSubmatch(lines[i]); m != nil {
			p.line, p.on = i, m[2]
			p.at, _ = strconv.Atoi(m[3])
			found++
		}
	}
	return p, found == 1
}

// resetToSource puts the moving volume back to the extents of the move's first leg.
func resetToSource(lines []string, all []block, at, move string) error {
	var from []piece
	moved := map[string]bool{}
	for i := range all {
		if p, ok := pieceOf(lines, &all[i]); ok && all[i].parent() == at+move+"_mimage_0" {
			from = append(from, p)
		}
	}
	for i := range all {
		p, ok := pieceOf(lines, &all[i])
		if !ok || p.on != move || !strings.HasPrefix(all[i].path, at) {
			continue
		}
		source := slices.IndexFunc(from, func(f piece) bool { return f.start <= p.at && p.at+p.count <= f.start+f.count })
		if source < 0 {
			return fmt.Errorf("%w: metadata text: %s is not in one piece on the source of the move", drivebay.ErrRefused, all[i].path)
		}
		f := from[source]
		lines[p.line] = onLine.ReplaceAllString(lines[p.line], fmt.Sprintf(`${1}"%s", %d`, f.on, f.at+p.at-f.start))
		moved[all[i].parent()] = true
	}
	for i := range all {
		if !moved[all[i].path] {
			continue
		}
		for n := all[i].begin; n < all[i].end; n++ {
			if strings.HasPrefix(strings.TrimSpace(lines[n]), "status = [") {
				lines[n] = strings.Replace(lines[n], `, "LOCKED"`, "", 1)
			}
		}
	}
	return nil
}
