package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// listOf is a list of at most most items of one kind, in the order they are written. remedy
// says how to write one.
func listOf[T any](item kind[T], most int, remedy string) kind[[]T] {
	return kind[[]T]{
		parse: func(v any) (all []T, faults []*fault) {
			items, ok := v.([]any)
			switch {
			case !ok:
				return nil, []*fault{wrong(remedy, "is %s, not a list", typeName(v))}
			case len(items) > most:
				return nil, []*fault{wrong(fmt.Sprintf("write %d at most", most), "has %d items", len(items))}
			}
			for i, v := range items {
				t, f := item.parse(v)
				all, faults = append(all, t), append(faults, below(index(i), f)...)
			}
			return all, faults
		},
		toml: func(all []T) string {
			parts := make([]string, len(all))
			for i, t := range all {
				parts[i] = item.toml(t)
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
	}
}

// patterns are up to most of an item that is itself a pattern.
func patterns(item kind[string], most int) kind[[]string] {
	return listOf(item, most, fmt.Sprintf("write up to %d of them between [ and ]", most))
}

// someOf is any number of words of a closed set, in the set's order.
func someOf(set ...string) kind[[]string] {
	remedy := "write any of " + quotedList(set) + " between [ and ]"
	k := listOf(word(remedy, set), 16, remedy)
	parse := k.parse
	k.parse = func(v any) (inOrder []string, faults []*fault) {
		chosen, faults := parse(v)
		for _, s := range set {
			if slices.Contains(chosen, s) {
				inOrder = append(inOrder, s)
			}
		}
		return inOrder, faults
	}
	return k
}

// maxRules bounds a list of rules: each is tried for everything it may match.
const maxRules = 100

// slowRules is the list [[slow.rule]].
func slowRules() kind[[]Rule] {
	return rules("slow.rule", "command", pattern("iptables*"), "threshold", duration(shortest, longest),
		func(command string, threshold time.Duration) Rule { return Rule{command, threshold} },
		func(r Rule) (string, time.Duration) { return r.Command, r.Threshold })
}

// namespaceRules is the list [[sampling.rule]].
func namespaceRules() kind[[]NamespaceRule] {
	return rules("sampling.rule", "namespace", pattern("kube-*"), "ratio", ratio(),
		func(namespace string, ratio float64) NamespaceRule { return NamespaceRule{namespace, ratio} },
		func(r NamespaceRule) (string, float64) { return r.Namespace, r.Ratio })
}

// rules is a list of tables, [[section]], each with two keys: what it matches, and what then
// holds.
func rules[A, B, R any](section, first string, a kind[A], second string, b kind[B],
	join func(A, B) R, split func(R) (A, B),
) kind[[]R] {
	remedy := fmt.Sprintf("write [[%s]] above %s = … and %s = …", section, first, second)
	both := fmt.Sprintf("a rule has %s and %s", first, second)
	return listOf(kind[R]{
		parse: func(v any) (r R, faults []*fault) {
			table, ok := v.(map[string]any)
			if !ok {
				return r, []*fault{wrong(remedy, "is %s", typeName(v))}
			}
			for _, key := range slices.Sorted(maps.Keys(table)) {
				if key != first && key != second {
					f := wrong(suggest(key, []string{first, second}, both), "is not an option")
					faults = append(faults, below("."+bare(key), []*fault{f})...)
				}
			}
			x, faultsOfFirst := ruleKey(table, first, a, both)
			y, faultsOfSecond := ruleKey(table, second, b, both)
			return join(x, y), slices.Concat(faults, faultsOfFirst, faultsOfSecond)
		},
		toml: func(r R) string {
			x, y := split(r)
			return fmt.Sprintf("{ %s = %s, %s = %s }", first, a.toml(x), second, b.toml(y))
		},
	}, maxRules, remedy)
}

// ruleKey reads one key of a rule. remedy says which keys a rule has.
func ruleKey[T any](table map[string]any, key string, k kind[T], remedy string) (t T, faults []*fault) {
	v, ok := table[key]
	if !ok {
		return t, []*fault{wrong(remedy, "%s is missing", key)}
	}
	t, faults = k.parse(v)
	return t, below("."+key, faults)
}
