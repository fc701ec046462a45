package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cniscope/cniscope/pkg/text"
)

// nearest returns the known name that wrong is most likely a slip of; empty if none is near.
func nearest(wrong string, known []string) string {
	best, least := "", max(2, len(wrong)/4)+1
	_, name := splitKey(wrong)
	for _, k := range known {
		d := distance(wrong, k)
		if _, same := splitKey(k); same == name {
			d = min(d, 2) // the right name in the wrong section
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
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

// join adds one part to a path, in quotes where TOML needs them.
func join(path, part string) string {
	if path == "" {
		return bare(part)
	}
	return path + "." + bare(part)
}

// bare writes one part of a key, in quotes where TOML needs them.
func bare(part string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	if part != "" && strings.Trim(part, plain) == "" {
		return part
	}
	return quote(part)
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func quotedList(words []string) string {
	quotedWords := make([]string, len(words))
	for i, w := range words {
		quotedWords[i] = quote(w)
	}
	return strings.Join(quotedWords, ", ")
}

// quoted shows in an error what somebody wrote.
func quoted(s string) string { return `"` + text.Clean(s, text.Bound) + `"` }

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// typeName says what TOML took a value for, in the words of its users.
func typeName(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case bool:
		return "a true/false value"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	default:
		return "a date or time"
	}
}
