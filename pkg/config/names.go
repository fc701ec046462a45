package config

import (
	"slices"
	"strings"
)

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

// suggest returns a remedy: the known name that wrong is most likely a slip of, or else.
func suggest(wrong string, known []string, otherwise string) string {
	if best := nearest(wrong, known); best != "" {
		return "did you mean " + best + "?"
	}
	return otherwise
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

// renamed maps the former name of an option, or of a flag with its dashes, to its present
// name. Using a former name is an error that names the present one.
var renamed = map[string]string{
	"agent":                "probe.agents",
	"containerd.address":   "runtime.socket",
	"limits.spans":         "limits.images",
	"run.dir":              "state.dir",
	"sampling.annotations": "sampling.annotation_namespaces",
	"--patience":           "--answer-timeout",
}

// Renamed returns the present name of what was once called former; ok is false if nothing was.
func Renamed(former string) (now string, ok bool) {
	now, ok = renamed[former]
	return now, ok
}

// formerName describes the use of a former name, and how to write what took its place.
func formerName(now string) *fault {
	section, name := splitKey(now)
	remedy := "write " + name + " = … in [" + section + "]"
	switch now {
	case "probe.agents":
		remedy = `write agents = ["NAME", …] in [probe]`
	case "limits.images":
		remedy += "; what a plugin waits for and changes is bounded by facts"
	}
	return wrong(remedy, "is now called %s", now)
}

// splitKey splits an option's name into its section and the name within it.
func splitKey(key string) (section, name string) {
	dot := strings.LastIndexByte(key, '.')
	return key[:max(0, dot)], key[dot+1:]
}
