package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
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
	return listOf(item, most, fmt.Sprintf(`write up to %d of them, as ["one", "another"]`, most))
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

// rules is a list of tables, [[section]], each with two keys: what it matches, and what then holds.
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

// entries reads a table of strings. Tables in it are dotted keys that were written without quotes:
// service.name = "x" is TOML for a table service. Values never get into an error.
func entries(most int, check func(key, value string) *fault) func(any) (map[string]string, []*fault) {
	return func(v any) (map[string]string, []*fault) {
		table, ok := v.(map[string]any)
		if !ok {
			return nil, []*fault{wrong(`write { name = "text" }`, "is %s, not a table", typeName(v))}
		}
		if len(table) == 0 {
			return nil, nil
		}
		found := make(map[string]string)
		var faults []*fault
		report := func(at string, f *fault) {
			f.under = at
			faults = append(faults, f)
		}
		var walk func(table map[string]any, prefix, at string, depth int)
		walk = func(table map[string]any, prefix, at string, depth int) {
			for _, k := range slices.Sorted(maps.Keys(table)) {
				key, at := prefix+k, at+"."+bare(k)
				switch v := table[k].(type) {
				case map[string]any:
					if depth == maxParts {
						report(at, wrong("use fewer dots", "has too many parts"))
						continue
					}
					walk(v, key+".", at, depth+1)
				case string:
					if _, twice := found[key]; twice {
						report(at, wrong("take one of them out", "is there twice, with and without quotes"))
					} else if f := check(key, v); f != nil {
						report(at, f)
					}
					found[key] = v
				default:
					report(at, wrong("write it in quotes", "is %s, not text", typeName(v)))
				}
			}
		}
		walk(table, "", "", 1)
		if len(found) > most {
			faults = append(faults, wrong(fmt.Sprintf("%d at most", most), "has %d entries", len(found)))
		}
		return found, faults
	}
}

// written is a table of strings as TOML: { a = "b" }.
func written[T any](table map[string]T, value func(T) string) string {
	if len(table) == 0 {
		return "{}"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(table)) {
		parts = append(parts, bare(k)+" = "+value(table[k]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// Bounds of what every span or request carries.
const (
	maxAttributes  = 64
	maxHeaders     = 32
	maxHeaderBytes = 8 << 10 // what gRPC servers take by default
)

// own are the attributes that have an option of their own, or none.
var own = map[string]string{
	"k8s.node.name":       "set node, in [resource]",
	"k8s.cluster.name":    "set cluster, in [resource]",
	"service.name":        "remove it: it is always cniscope",
	"service.version":     "remove it: cniscope sets it",
	"service.instance.id": "remove it: cniscope sets it",
}

// attributes is a table of resource attributes.
func attributes() kind[map[string]string] {
	return kind[map[string]string]{
		parse: entries(maxAttributes, func(key, value string) *fault {
			if remedy, ok := own[key]; ok {
				return wrong(remedy, "cannot be set here")
			}
			if key == "" || printable(key, text.Bound) != nil {
				return wrong(`write a name, as "deployment.environment.name"`, "is not a name")
			}
			return printable(value, textLength)
		}),
		toml: func(table map[string]string) string { return written(table, quote) },
	}
}

// headers is a table of gRPC metadata.
func headers() kind[map[string]Secret] {
	read := entries(maxHeaders, checkHeader)
	return kind[map[string]Secret]{
		parse: func(v any) (map[string]Secret, []*fault) {
			table, faults := read(v)
			if table == nil {
				return nil, faults
			}
			secrets := make(map[string]Secret, len(table))
			for k, v := range table {
				secrets[strings.ToLower(k)] = NewSecret(v)
			}
			if len(secrets) < len(table) {
				faults = append(faults, wrong("take one of them out", "has the same name twice, in upper and lower case"))
			}
			return secrets, faults
		},
		toml: func(table map[string]Secret) string {
			return written(table, func(s Secret) string { return quote(s.String()) })
		},
	}
}

// checkHeader refuses what gRPC would refuse at every single request (PROTOCOL-HTTP2, "Custom-Metadata").
func checkHeader(key, value string) *fault {
	lower := strings.ToLower(key)
	if lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return wrong("use letters, digits, -, _ and .", "is not the name of a header")
	}
	if strings.HasPrefix(lower, "grpc-") {
		return wrong("remove it", "belongs to gRPC itself")
	}
	if len(value) > maxHeaderBytes {
		return wrong(fmt.Sprintf("shorten it to %d bytes", maxHeaderBytes), "has %d bytes", len(value))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return wrong("use printable ASCII; encode what is not", "holds characters that cannot be sent")
	}
	return nil
}
