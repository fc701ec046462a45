package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cniscope/cniscope/pkg/text"
)

// nearest returns the known name with a typo of one or two letters, or of another section.
func nearest(wrong string, known []string) string {
	section, name := splitKey(wrong)
	best, least := "", max(min(2, len(name)/2), len(name)/3)+1
	isSection := slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, section+".") })
	for _, k := range known {
		in, its := splitKey(k)
		d := max(least, distance(wrong, k))
		switch {
		case in == section:
			d = distance(name, its)
		case its == name && (section == "" || !isSection || strings.HasPrefix(in, section+".") ||
			strings.HasPrefix(section, in+".")):
			d = min(d, 1)
		case in == "" || section == "":
			d = distance(wrong, k)
		case its == name && distance(section, in) <= max(1, len(section)/3):
			d = distance(section, in)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

func nearestWord(s string, set []string) string {
	s = strings.ToLower(s)
	for _, w := range set {
		if s != "" && (s == w || len(s) > 2 && (strings.HasPrefix(s, w) || strings.HasPrefix(w, s))) {
			return w
		}
	}
	for _, w := range set {
		if distance(s, w) <= max(1, len(w)/4) {
			return w
		}
	}
	return ""
}

func suggest(wrong string, known []string, otherwise string) string {
	if best := nearest(wrong, known); best != "" {
		return "did you mean " + best + "?"
	}
	return otherwise
}

// distance is the Levenshtein distance; of names above 64 bytes, their length.
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

// foreign maps option names of other programs to remedies.
var foreign = map[string]string{
	"export.otlp.protocol": "remove it: an endpoint with a path, such as /v1/traces, is OTLP over HTTP (usual port " +
		"4318), any other OTLP over gRPC (4317)",
	"export.otlp.tls":       "remove it: an endpoint with https:// is TLS, with ca, cert and key beside it",
	"export.otlp.enabled":   "remove it: without endpoint nothing is sent",
	"export.otlp.url":       "write endpoint",
	"export.otlp.address":   "write endpoint",
	"export.otlp.ca_file":   "write ca",
	"export.otlp.cert_file": "write cert",
	"export.otlp.key_file":  "write key",
	"export.jaeger":         "Jaeger accepts OTLP: write [export.otlp] with its endpoint, port 4317 by default",
	"export.zipkin":         "write [export.otlp]: a Collector speaks Zipkin",
	"exporter":              "write [export]",
	"exporters":             "write [export.otlp]",
	"metrics.enabled":       "remove it, and write listen, such as \"127.0.0.1:9471\"",
	"metrics.port":          "write listen, such as \"127.0.0.1:9471\"",
	"metrics.address":       "write listen, such as \"127.0.0.1:9471\"",
	"metrics.tls":           "write web_config, the path of a file that says it",
	"prometheus":            "write [metrics]",
	"logging":               "write [log]",
	"runtime.endpoint":      "write socket, a path without unix://",
	"runtime.address":       "write socket, a path",
	"nri.endpoint":          "write socket, a path without unix://",
	"slow.threshold":        "write command, call, agent or lock, each with a time of its own",
}

// unknown reports an unknown key and suggests the nearest name, or all.
func unknown(key string, isTable bool, known []string) *Problem {
	section, _ := splitKey(key)
	var sections, inSection []string
	for _, k := range known {
		s, name := splitKey(k)
		sections = append(sections, s)
		if s == section {
			inSection = append(inSection, name)
		}
	}
	sections = slices.Compact(sections)
	others, what := "["+section+"] has "+strings.Join(inSection, ", "), "is not an option"
	if len(inSection) == 0 || isTable {
		others = "the sections are " + strings.Join(sections, ", ")
	}
	if isTable {
		what = "is not a section"
	}
	if advice, ok := foreign[key]; ok {
		return wrong(advice, "%s", what)
	}
	return wrong(suggest(key, append(sections, known...), others), "%s", what)
}

func splitKey(key string) (section, name string) {
	dot := strings.LastIndexByte(key, '.')
	return key[:max(0, dot)], key[dot+1:]
}

func join(path, part string) string {
	if path == "" {
		return bare(part)
	}
	return path + "." + bare(part)
}

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
