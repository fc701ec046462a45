package config

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// kind is a type of option: how it is read from what TOML decoded, and how it is written.
type kind[T any] struct {
	// parse returns the value, or what is wrong with it.
	parse func(any) (T, []*fault)
	// toml writes the value as TOML would have it; secrets redacted.
	toml func(T) string
}

// simple makes a kind of a parser that finds at most one fault.
func simple[T any](parse func(any) (T, *fault), toml func(T) string) kind[T] {
	return kind[T]{
		parse: func(v any) (T, []*fault) {
			t, f := parse(v)
			if f != nil {
				return t, []*fault{f}
			}
			return t, nil
		},
		toml: toml,
	}
}

// ratio is a number from 0 to 1.
func ratio() kind[float64] {
	const remedy = "write a number from 0 to 1, as 0.1"
	return simple(func(v any) (float64, *fault) {
		n, ok := v.(float64)
		if i, whole := v.(int64); whole {
			n, ok = float64(i), true
		}
		if !ok {
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		if !(n >= 0 && n <= 1) { // NaN too
			return 0, wrong(remedy, "%v is out of range", n)
		}
		return n, nil
	}, func(n float64) string {
		if n == math.Trunc(n) {
			return strconv.FormatFloat(n, 'f', 1, 64)
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	})
}

// boolean is true or false.
func boolean() kind[bool] {
	return simple(func(v any) (bool, *fault) {
		b, ok := v.(bool)
		if !ok {
			return false, wrong("write true or false, without quotes", "is %s", typeName(v))
		}
		return b, nil
	}, strconv.FormatBool)
}

// count is a whole number.
func count(least, most int) kind[int] {
	remedy := fmt.Sprintf("write a whole number from %d to %d", least, most)
	return simple(func(v any) (int, *fault) {
		n, ok := v.(int64)
		if !ok {
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		if n < int64(least) || n > int64(most) {
			return 0, wrong(remedy, "%d is out of range", n)
		}
		return int(n), nil
	}, strconv.Itoa)
}

// duration is a length of time with its unit.
func duration(least, most time.Duration) kind[time.Duration] {
	remedy := fmt.Sprintf(`write a number with its unit, as "250ms" or "2s", from %s to %s`, short(least), short(most))
	return simple(func(v any) (time.Duration, *fault) {
		s, ok := v.(string)
		if !ok {
			return 0, wrong(remedy, "is %s", typeName(v))
		}
		d, err := time.ParseDuration(s)
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
	}, func(d time.Duration) string { return quote(short(d)) })
}

// short writes a duration as people do: 10m, not 10m0s.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// size is a number of bytes.
func size(least, most int64, powerOfTwo bool) kind[int64] {
	remedy := fmt.Sprintf(`write a number with its unit, as "8MiB", from %s to %s`, binarySize(least), binarySize(most))
	if powerOfTwo {
		remedy += ", a power of two"
	}
	return simple(func(v any) (int64, *fault) {
		var n int64
		switch v := v.(type) {
		case int64:
			n = v
		case string:
			var ok bool
			if n, ok = parseBytes(v); !ok {
				return 0, wrong(sizeRemedy(v, remedy), "%s is not a size", quoted(v))
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
	}, func(n int64) string { return quote(binarySize(n)) })
}

// sizeRemedy is what somebody meant who wrote a number of decimal units, or none.
func sizeRemedy(s, otherwise string) string {
	for short, long := range map[string]string{"GB": "GiB", "G": "GiB", "Gi": "GiB", "MB": "MiB", "M": "MiB", "Mi": "MiB", "KB": "KiB", "kB": "KiB", "K": "KiB", "Ki": "KiB"} {
		digits, ok := strings.CutSuffix(s, short)
		if _, err := strconv.ParseUint(digits, 10, 32); ok && err == nil {
			return "write " + quote(digits+long)
		}
	}
	return otherwise
}

// binary holds the units of sizes, the largest first.
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

// str is text that check accepts; check returns nil for what is right.
func str(check func(string) *fault) kind[string] {
	return simple(func(v any) (string, *fault) {
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
	}, quote)
}

// textLength bounds, in bytes, every text that an option holds. PATH_MAX of
// Linux, the longest that any of them has a use for.
const textLength = 4096

// printable finds what would not come through a terminal, a header or a backend as it was written.
func printable(s string, limit int) *fault {
	if len(s) > limit {
		return wrong(fmt.Sprintf("shorten it to %d bytes", limit), "has %d bytes", len(s))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return wrong("take them out", "has characters that cannot be printed")
	}
	return nil
}

// anyText accepts every text.
func anyText(string) *fault { return nil }

// oneOf is one word of a closed set.
func oneOf(set ...string) kind[string] {
	return word("write one of "+quotedList(set), set)
}

func word(remedy string, set []string) kind[string] {
	return str(func(s string) *fault {
		if slices.Contains(set, s) {
			return nil
		}
		if meant := nearestWord(s, set); meant != "" {
			return wrong("did you mean "+quote(meant)+"? "+strings.ToUpper(remedy[:1])+remedy[1:], "%s is not known", quoted(s))
		}
		return wrong(remedy, "%s is not known", quoted(s))
	})
}

// pattern is a pattern of path.Match.
func pattern(example string) kind[string] { return checkedPattern(example, anyText) }

func checkedPattern(example string, check func(string) *fault) kind[string] {
	return str(func(s string) *fault {
		if s == "" {
			return wrong(fmt.Sprintf("write a pattern, as %q", example), "is empty")
		}
		if _, err := path.Match(s, ""); err != nil {
			return wrong(`close every [ and end no pattern in \`, "%s is not a pattern", quoted(s))
		}
		return check(s)
	})
}

// program is a pattern on the path of an executable, which has "/" on every system: "\" is what makes a
// character of a pattern an ordinary one.
func program(on System) kind[string] {
	example, rooted := "/usr/bin/cri-dockerd", func(s string) bool { return strings.HasPrefix(s, "/") }
	if on == Windows {
		example = "C:/k/bin/containerd.exe"
		rooted = func(s string) bool { return drive.MatchString(s) && strings.HasPrefix(s[2:], "/") }
	}
	return checkedPattern(example, func(s string) *fault {
		if rooted(s) {
			return nil
		}
		return wrong(fmt.Sprintf("write it from the root, as %q", example), "%s names no path", quoted(s))
	})
}

// A command that takes less than a microsecond does not exist; a day flags nothing.
const (
	shortest = time.Microsecond
	longest  = 24 * time.Hour
)
