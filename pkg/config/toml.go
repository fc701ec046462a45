package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/cniscope/cniscope/pkg/text"
)

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

// index is the path of item i below its list.
func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// quotedList writes words as TOML would, one after another.
func quotedList(words []string) string {
	quotedWords := make([]string, len(words))
	for i, w := range words {
		quotedWords[i] = quote(w)
	}
	return strings.Join(quotedWords, ", ")
}

// quoted shows in an error what somebody wrote.
func quoted(s string) string { return `"` + text.Clean(s, text.Bound) + `"` }

// quote writes s as a TOML basic string.
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
