package config

// Nearest returns the known word that is most similar: the one with the fewest edits, and no more
// than a third of the word's length.
func Nearest(word string, known []string) (string, bool) {
	best, limit := "", max(1, len([]rune(word))/3)+1
	for _, k := range known {
		if d := edits(word, k); d < limit {
			best, limit = k, d
		}
	}
	return best, best != ""
}

// edits returns the Levenshtein distance without regard to case. It keeps one row of the table at
// a time.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := 1
			if lower(x[i]) == lower(y[j]) {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
