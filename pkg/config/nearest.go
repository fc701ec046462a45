package config

import "slices"

// nearest returns the known name that wrong is most likely a slip of; empty if none is near.
func nearest(wrong string, known []string) string {
	best, least := "", max(2, len(wrong)/4)+1
	for _, k := range known {
		d := distance(wrong, k)
		if sameOption(wrong, k) {
			d = min(d, 2) // the right name in the wrong section
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// sameOption reports whether two options are called the same in their sections.
func sameOption(a, b string) bool {
	_, nameA := splitKey(a)
	_, nameB := splitKey(b)
	return nameA == nameB
}

// distance is the number of letters to put in, take out or change to make b of a
// (Levenshtein), for names of at most 64 bytes; of longer ones it is their length.
func distance(a, b string) int {
	if max(len(a), len(b)) > 64 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = slices.Min([]int{change, row[j+1] + 1, row[j] + 1})
		}
	}
	return row[len(b)]
}
