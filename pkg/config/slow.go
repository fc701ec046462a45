package config

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Rule is a threshold for the commands that a pattern matches.
type Rule struct {
	// Command is a pattern of path.Match for the name a command was called by, or
	// for the base name of its file. Upper and lower case are the same.
	Command string
	// Threshold is from when on such a command is slow.
	Threshold time.Duration
}

// matches reports whether the rule is for a command called name whose file is file.
func (r Rule) matches(name, file string) bool {
	pattern := strings.ToLower(r.Command)
	if i := strings.LastIndexAny(file, `/\`); i >= 0 {
		file = file[i+1:]
	}
	for _, s := range []string{name, file} {
		// The pattern was checked when it was read; a bad one matches nothing.
		if ok, err := path.Match(pattern, strings.ToLower(s)); ok && err == nil {
			return true
		}
	}
	return false
}

// Threshold returns from when on a command is slow: what the first matching rule
// says, else Command. name is what it was called by, file the path that was
// executed, either may be empty.
func (s Slow) Threshold(name, file string) time.Duration {
	for _, r := range s.Rules {
		if r.matches(name, file) {
			return r.Threshold
		}
	}
	return s.Command
}

// A command below a microsecond does not exist; whoever wants nothing flagged
// sets a day.
const (
	shortest = time.Microsecond
	longest  = 24 * time.Hour
)

// maxRules bounds the rules: each is tried for every command.
const maxRules = 100

// rules is the list [[slow.rule]].
func rules() kind[[]Rule] {
	const remedy = "write [[slow.rule]] above command = \"…\" and threshold = \"…\""
	threshold := span(shortest, longest)
	pattern := words(func(s string) *fault {
		if s == "" {
			return wrong(`name a command, as "iptables*"`, "is empty")
		}
		if _, err := path.Match(s, ""); err != nil {
			return wrong(`close every [ and end no pattern in \`, "%s is not a pattern", quoted(s))
		}
		return nil
	})

	one := func(at string, v any) (Rule, []*fault) {
		table, ok := v.(map[string]any)
		if !ok {
			f := wrong(remedy, "is %s", typeName(v))
			f.under = at
			return Rule{}, []*fault{f}
		}
		var r Rule
		var faults []*fault
		for key := range table {
			if key != "command" && key != "threshold" {
				f := wrong("a rule has command and threshold"+meant(key, []string{"command", "threshold"}), "is not an option")
				f.under = at + "." + bare(key)
				faults = append(faults, f)
			}
		}
		faults = append(faults, part(table, at, "command", pattern, &r.Command)...)
		faults = append(faults, part(table, at, "threshold", threshold, &r.Threshold)...)
		return r, faults
	}

	return kind[[]Rule]{
		parse: func(v any) ([]Rule, []*fault) {
			items, ok := v.([]any)
			if !ok {
				return nil, []*fault{wrong(remedy, "is %s, not a list", typeName(v))}
			}
			if len(items) > maxRules {
				return nil, []*fault{wrong(fmt.Sprintf("%d at most; patterns may hold * and ?", maxRules), "%d rules", len(items))}
			}
			var all []Rule
			var faults []*fault
			for i, item := range items {
				r, f := one(index(i), item)
				all, faults = append(all, r), append(faults, f...)
			}
			return all, faults
		},
		toml: func(all []Rule) string {
			parts := make([]string, len(all))
			for i, r := range all {
				parts[i] = fmt.Sprintf("{ command = %s, threshold = %s }", pattern.toml(r.Command), threshold.toml(r.Threshold))
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
	}
}

// part reads one key of a table inside a list.
func part[T any](table map[string]any, at, key string, k kind[T], to *T) []*fault {
	v, ok := table[key]
	if !ok {
		f := wrong("a rule needs both command and threshold", "%s is missing", key)
		f.under = at
		return []*fault{f}
	}
	got, faults := k.parse(v)
	for _, f := range faults {
		f.under = at + "." + key + f.under
	}
	*to = got
	return faults
}
