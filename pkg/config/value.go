package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/text"
)

type value struct {
	// parse returns the field's type, or faults.
	parse func(any) (any, []*Problem)
	// toml redacts secrets.
	toml func(any) string
	// possible is in words, schema in JSON Schema.
	possible, schema string
}

// simple returns a value with at most one fault.
func simple[T any](parse func(any) (T, *Problem), toml func(T) string, possible, schema string) value {
	return value{
		parse: func(v any) (any, []*Problem) {
			t, f := parse(v)
			if f != nil {
				return t, []*Problem{f}
			}
			return t, nil
		},
		toml:     func(v any) string { return toml(v.(T)) },
		possible: possible, schema: schema,
	}
}

// spec holds the tags of an option, or of a rule's key.
type spec struct {
	key          string // "export.otlp.endpoint"; for a rule, its list's key
	tag          reflect.StructTag
	system       System
	check        string // see textOf
	defaultValue string
	words        []string // allowed values, if limited
}

func valueOf(t reflect.Type, s spec) value {
	least, most, _ := strings.Cut(s.tag.Get("range"), "..")
	switch reflect.Zero(t).Interface().(type) {
	case float64:
		return ratio()
	case bool:
		return simple(readBool, strconv.FormatBool, "true or false", `{"type": "boolean"}`)
	case int:
		return count(number(least), number(most), s.tag.Get("unit"))
	case int64:
		return size(number(least), number(most), strings.HasSuffix(s.tag.Get("unit"), "power of two"))
	case time.Duration:
		return duration(span(least), span(most))
	case string:
		return textOf(s)
	case map[string]string:
		return attributes()
	case map[string]Secret:
		return headers()
	}
	switch {
	case t.Kind() != reflect.Slice:
		panic("no option can be a " + t.String())
	case t.Elem().Kind() == reflect.Struct:
		return rules(t, s, number(most))
	case len(s.words) > 0:
		return someOf(t, s.words)
	}
	s.check = cmp.Or(s.check, "pattern")
	return listOf(t, textOf(s), number(most), fmt.Sprintf(`write up to %s of them, as ["one", "another"]`, most))
}

// number and span parse the tag range. A mistake panics, in each test of this package.
func number(s string) int64 {
	n, ok := parseBytes(s)
	if plain, err := strconv.ParseInt(s, 10, 64); err == nil {
		n, ok = plain, true
	}
	if !ok {
		panic("not a number: " + s)
	}
	return n
}

func span(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

func ratio() value {
	const remedy = "write a number from 0 to 1, such as 0.1"
	return simple(func(v any) (float64, *Problem) {
		n, ok := v.(float64)
		if i, whole := v.(int64); whole {
			n, ok = float64(i), true
		}
		if !ok {
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		if !(n >= 0 && n <= 1) { // includes NaN
			return 0, wrong(remedy, "%v is out of range", n)
		}
		return n, nil
	}, func(n float64) string {
		if n == math.Trunc(n) {
			return strconv.FormatFloat(n, 'f', 1, 64)
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	}, "0 to 1", `{"$ref": "#/definitions/ratio"}`)
}

func readBool(v any) (bool, *Problem) {
	b, ok := v.(bool)
	if !ok {
		return false, wrong("write true or false, without quotes", "is %s", typeName(v))
	}
	return b, nil
}

func count(least, most int64, unit string) value {
	remedy := fmt.Sprintf("write a whole number from %d to %d", least, most)
	return simple(func(v any) (int, *Problem) {
		n, ok := v.(int64)
		if !ok {
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		if n < least || n > most {
			return 0, wrong(remedy, "%d is out of range", n)
		}
		return int(n), nil
	}, strconv.Itoa, strings.TrimSpace(fmt.Sprintf("%d to %d %s", least, most, unit)),
		fmt.Sprintf(`{"type": "integer", "minimum": %d, "maximum": %d}`, least, most))
}

func duration(least, most time.Duration) value {
	possible := text.Short(least) + " to " + text.Short(most)
	remedy := fmt.Sprintf(`write a number with its unit, such as "250ms" or "2s", from %s`, possible)
	return simple(func(v any) (time.Duration, *Problem) {
		s, ok := v.(string)
		if !ok {
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		d, err := text.Duration(s)
		if err != nil {
			if _, bare := strconv.ParseUint(s, 10, 32); bare == nil {
				return 0, wrong("write "+quote(s+"ms")+" or "+quote(s+"s"), "%s has no unit", quoted(s))
			}
			return 0, wrong(remedy, "%s is not a duration", quoted(s))
		}
		if d < least || d > most {
			return 0, wrong(remedy, "%s is out of range", quoted(s))
		}
		return d, nil
	}, func(d time.Duration) string { return quote(text.Short(d)) }, possible, `{"$ref": "#/definitions/duration"}`)
}

func size(least, most int64, powerOfTwo bool) value {
	possible := binarySize(least) + " to " + binarySize(most)
	if powerOfTwo {
		possible += ", a power of two"
	}
	remedy := `write a number with its unit, such as "8MiB", from ` + possible
	return simple(func(v any) (int64, *Problem) {
		var n int64
		switch v := v.(type) {
		case int64:
			n = v
		case string:
			var ok bool
			if n, ok = parseBytes(v); !ok {
				return 0, wrong(remedy, "%s is not a size", quoted(v))
			}
		default:
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		if n < least || n > most {
			return 0, wrong(remedy, "%s is out of range", binarySize(n))
		}
		if powerOfTwo && n&(n-1) != 0 {
			return 0, wrong(remedy, "%s is not a power of two", binarySize(n))
		}
		return n, nil
	}, func(n int64) string { return quote(binarySize(n)) }, possible, `{"$ref": "#/definitions/size"}`)
}

var binary = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseBytes(s string) (int64, bool) {
	for _, u := range binary {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			return 0, false
		}
		return n * u.bytes, true
	}
	return 0, false
}

func binarySize(n int64) string {
	for _, u := range binary {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return "0B"
}

func str(possible, schema string, check func(string) *Problem) value {
	return simple(func(v any) (string, *Problem) {
		s, ok := v.(string)
		if !ok {
			remedy := "write it in quotes"
			if _, list := v.([]any); list {
				remedy = "write one text, in quotes"
			}
			return "", wrong(remedy, "is %s, not text", typeName(v))
		}
		if f := printable(s, textLength); f != nil {
			return "", f
		}
		return s, check(s)
	}, quote, possible, schema)
}

// textLength bounds every text in bytes: PATH_MAX of Linux.
const textLength = 4096

// printable rejects characters that a terminal, a header or a backend would change.
func printable(s string, limit int) *Problem {
	if len(s) > limit {
		return wrong(fmt.Sprintf("shorten it to %d bytes", limit), "has %d bytes", len(s))
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return wrong("take them out", "has characters that cannot be printed")
	}
	return nil
}

func oneOf(remedy string, set []string) value {
	possible := strings.Join(set, ", ")
	return str(possible, `{"enum": [`+quotedList(set)+`]}`, func(s string) *Problem {
		if slices.Contains(set, s) {
			return nil
		}
		if meant := nearestWord(s, set); meant != "" {
			remedy := strings.ToUpper(remedy[:1]) + remedy[1:]
			return wrong("did you mean "+quote(meant)+"? "+remedy, "%s is not known", quoted(s))
		}
		return wrong(remedy, "%s is not known", quoted(s))
	})
}

const redacted = "[redacted]"

// Secret is text that prints, logs and encodes as "[redacted]". Reveal returns it.
type Secret struct{ text string }

// newSecret wraps text.
func newSecret(text string) Secret { return Secret{text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter for every verb, including %#v and %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, which JSON also uses.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
