package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxRules bounds a list of rules: each is tried for everything it may match.
const maxRules = 100

// pattern is a pattern of path.Match.
func pattern(example string) kind[string] {
	return words(func(s string) *fault {
		if s == "" {
			return wrong(fmt.Sprintf("write a pattern, as %q", example), "is empty")
		}
		if _, err := path.Match(s, ""); err != nil {
			return wrong(`close every [ and end no pattern in \`, "%s is not a pattern", quoted(s))
		}
		return nil
	})
}

// program is a pattern on the path of an executable.
func program(example string) kind[string] {
	path := pattern(example)
	return kind[string]{toml: path.toml, parse: func(v any) (string, []*fault) {
		s, faults := path.parse(v)
		if len(faults) == 0 && !strings.HasPrefix(s, "/") {
			faults = []*fault{wrong(fmt.Sprintf("write it from the root, as %q", example), "%s names no path", quoted(s))}
		}
		return s, faults
	}}
}

// ruleList is a list of tables, [[section]], each with two keys: what it matches, and
// what then holds.
func ruleList[A, B, R any](section, first string, a kind[A], second string, b kind[B],
	join func(A, B) R, split func(R) (A, B),
) kind[[]R] {
	both := fmt.Sprintf("a rule has %s and %s", first, second)
	return tableList(fmt.Sprintf("write [[%s]] above %s = … and %s = …", section, first, second), both, []string{first, second},
		func(at string, table map[string]any) (R, []*fault) {
			x, faults := part(table, at, first, a, both)
			y, f := part(table, at, second, b, both)
			return join(x, y), append(faults, f...)
		},
		func(r R) string {
			x, y := split(r)
			return fmt.Sprintf("{ %s = %s, %s = %s }", first, a.toml(x), second, b.toml(y))
		})
}

// tableList is a list of tables with certain keys. has says in words which those are.
func tableList[R any](remedy, has string, keys []string, read func(at string, table map[string]any) (R, []*fault), write func(R) string) kind[[]R] {
	one := func(at string, v any) (R, []*fault) {
		table, ok := v.(map[string]any)
		if !ok {
			var none R
			f := wrong(remedy, "is %s", typeName(v))
			f.under = at
			return none, []*fault{f}
		}
		var faults []*fault
		for key := range table {
			if !slices.Contains(keys, key) {
				f := wrong(has, "is not an option")
				if best := nearest(key, keys); best != "" {
					f.remedy = "did you mean " + best + "?"
				}
				f.under = at + "." + bare(key)
				faults = append(faults, f)
			}
		}
		r, f := read(at, table)
		return r, append(faults, f...)
	}

	return kind[[]R]{
		parse: func(v any) ([]R, []*fault) {
			items, ok := v.([]any)
			if !ok {
				return nil, []*fault{wrong(remedy, "is %s, not a list", typeName(v))}
			}
			if len(items) > maxRules {
				return nil, []*fault{wrong(fmt.Sprintf("%d at most; patterns may hold * and ?", maxRules), "%d rules", len(items))}
			}
			var all []R
			var faults []*fault
			for i, item := range items {
				r, f := one(index(i), item)
				all, faults = append(all, r), append(faults, f...)
			}
			return all, faults
		},
		toml: func(all []R) string {
			parts := make([]string, len(all))
			for i, r := range all {
				parts[i] = write(r)
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
	}
}

// part reads one key of a table inside a list.
func part[T any](table map[string]any, at, key string, k kind[T], both string) (T, []*fault) {
	v, ok := table[key]
	if !ok {
		var none T
		f := wrong(both, "%s is missing", key)
		f.under = at
		return none, []*fault{f}
	}
	got, faults := k.parse(v)
	for _, f := range faults {
		f.under = at + "." + key + f.under
	}
	return got, faults
}
