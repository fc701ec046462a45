package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

func listOf(t reflect.Type, item value, most int64, remedy string) value {
	return value{
		parse: func(v any) (any, []*Problem) {
			all := reflect.Zero(t)
			items, ok := v.([]any)
			switch {
			case !ok:
				return nil, []*Problem{wrong(remedy, "is %s, not a list", typeName(v))}
			case int64(len(items)) > most:
				return nil, []*Problem{wrong(fmt.Sprintf("write %d at most", most), "has %d items", len(items))}
			}
			var faults []*Problem
			for i, v := range items {
				one, f := item.parse(v)
				if faults = append(faults, below(index(i), f)...); len(faults) == 0 {
					all = reflect.Append(all, reflect.ValueOf(one))
				}
			}
			return all.Interface(), faults
		},
		toml: func(v any) string {
			all := reflect.ValueOf(v)
			parts := make([]string, all.Len())
			for i := range parts {
				parts[i] = item.toml(all.Index(i).Interface())
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
		possible: fmt.Sprintf("up to %d of: %s", most, item.possible),
		schema:   fmt.Sprintf(`{"type": "array", "items": %s, "maxItems": %d}`, item.schema, most),
	}
}

// someOf accepts words of a set, and keeps the set's order.
func someOf(t reflect.Type, set []string) value {
	remedy := "write any of " + quotedList(set) + " between [ and ]"
	all := listOf(t, oneOf(remedy, set), 16, remedy)
	parse := all.parse
	all.parse = func(v any) (any, []*Problem) {
		chosen, faults := parse(v)
		if len(faults) > 0 {
			return nil, faults
		}
		var inOrder []string
		for _, s := range set {
			if slices.Contains(chosen.([]string), s) {
				inOrder = append(inOrder, s)
			}
		}
		return inOrder, nil
	}
	all.possible = "any of " + strings.Join(set, ", ")
	all.schema = `{"type": "array", "items": {"enum": [` + quotedList(set) + `]}, "uniqueItems": true}`
	return all
}

func rules(list reflect.Type, s spec, most int64) value {
	t := list.Elem()
	var keys, properties, assignments, possible []string
	values := map[string]value{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("key")
		values[key] = valueOf(f.Type, spec{key: s.key, tag: f.Tag, system: s.system, check: f.Tag.Get("is")})
		keys = append(keys, key)
		assignments = append(assignments, key+" = …")
		possible = append(possible, key+": "+values[key].possible)
		properties = append(properties, quote(key)+": "+values[key].schema)
	}
	remedy := fmt.Sprintf("write [[%s]] above %s", s.key, strings.Join(assignments, " and "))
	both := "a rule has " + strings.Join(keys, " and ")
	rule := value{
		parse: func(v any) (any, []*Problem) {
			table, ok := v.(map[string]any)
			if !ok {
				return nil, []*Problem{wrong(remedy, "is %s", typeName(v))}
			}
			var faults []*Problem
			for _, key := range slices.Sorted(maps.Keys(table)) {
				if !slices.Contains(keys, key) {
					f := wrong(suggest(key, keys, both), "is not an option")
					faults = append(faults, below("."+bare(key), []*Problem{f})...)
				}
			}
			r := reflect.New(t).Elem()
			for i, key := range keys {
				v, ok := table[key]
				if !ok {
					faults = append(faults, wrong(both, "%s is missing", key))
					continue
				}
				one, f := values[key].parse(v)
				if faults = append(faults, below("."+key, f)...); len(f) == 0 {
					r.Field(i).Set(reflect.ValueOf(one))
				}
			}
			return r.Interface(), faults
		},
		toml: func(v any) string {
			var parts []string
			for i, key := range keys {
				parts = append(parts, key+" = "+values[key].toml(reflect.ValueOf(v).Field(i).Interface()))
			}
			return "{ " + strings.Join(parts, ", ") + " }"
		},
		possible: "{ " + strings.Join(possible, ", ") + " }",
		schema: `{"type": "object", "additionalProperties": false, "properties": {` + strings.Join(properties, ", ") +
			`}, "required": [` + quotedList(keys) + `]}`,
	}
	return listOf(list, rule, most, remedy)
}

// maxParts bounds a key's parts: the longest option has three, a hostile file 100,000.
const maxParts = 16

// entries accepts a table of strings, also nested: service.name = "x" is a table in TOML. Errors contain no values.
func entries(v any, most int, check func(key, value string) *Problem) (map[string]string, []*Problem) {
	table, ok := v.(map[string]any)
	if !ok {
		return nil, []*Problem{wrong(`write { name = "text" }`, "is %s, not a table", typeName(v))}
	}
	found := make(map[string]string)
	var faults []*Problem
	report := func(at string, f *Problem) { faults = append(faults, below(at, []*Problem{f})...) }
	var walk func(table map[string]any, prefix, at string, depth int)
	walk = func(table map[string]any, prefix, at string, depth int) {
		for _, k := range slices.Sorted(maps.Keys(table)) {
			key, at := prefix+k, at+"."+bare(k)
			switch v := table[k].(type) {
			case map[string]any:
				if depth == maxParts || len(key) > maxPath {
					report(at, wrong("use fewer dots and shorter words", "is too long"))
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

// tables accepts a table written as { a = "b" }. read returns no empty table.
func tables[T any](read func(any) (map[string]T, []*Problem), text func(T) string, possible string) value {
	return value{
		parse: func(v any) (any, []*Problem) {
			table, faults := read(v)
			if len(table) == 0 {
				table = nil
			}
			return table, faults
		},
		toml: func(v any) string {
			table := v.(map[string]T)
			if len(table) == 0 {
				return "{}"
			}
			var parts []string
			for _, k := range slices.Sorted(maps.Keys(table)) {
				parts = append(parts, bare(k)+" = "+quote(text(table[k])))
			}
			return "{ " + strings.Join(parts, ", ") + " }"
		},
		possible: possible, schema: `{"$ref": "#/definitions/texts"}`,
	}
}

const (
	maxAttributes  = 64
	maxHeaders     = 32
	maxHeaderBytes = 8 << 10 // gRPC servers' default
)

var own = map[string]string{
	"k8s.node.name":       "set node, in [resource]",
	"k8s.cluster.name":    "set cluster, in [resource]",
	"service.version":     "remove it: cniscope sets it",
	"service.instance.id": "remove it: cniscope sets it",
}

func attributes() value {
	return tables(func(v any) (map[string]string, []*Problem) {
		return entries(v, maxAttributes, func(key, value string) *Problem {
			if remedy, ok := own[key]; ok {
				return wrong(remedy, "cannot be set here")
			}
			if key == "" || printable(key, text.Bound) != nil {
				return wrong(`write a name, such as "deployment.environment.name"`, "is not a name")
			}
			return printable(value, textLength)
		})
	}, func(s string) string { return s }, fmt.Sprintf("up to %d names with their text", maxAttributes))
}

func headers() value {
	return tables(func(v any) (map[string]Secret, []*Problem) {
		table, faults := entries(v, maxHeaders, checkHeader)
		for _, f := range faults {
			if f.What == noHeader {
				f.Key = "" // it may be the secret
			}
		}
		secrets := make(map[string]Secret, len(table))
		for k, v := range table {
			secrets[strings.ToLower(k)] = newSecret(v)
		}
		if len(secrets) < len(table) {
			faults = append(faults, wrong("take one of them out", "has the same name twice, in upper and lower case"))
		}
		return secrets, faults
	}, Secret.String, fmt.Sprintf("up to %d names with their text", maxHeaders))
}

const noHeader = "has an entry that is not the name of a header"

// checkHeader rejects what gRPC would reject at every request (PROTOCOL-HTTP2, "Custom-Metadata").
func checkHeader(key, value string) *Problem {
	lower := strings.ToLower(key)
	if lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return wrong("use letters, digits, -, _ and . before the =", noHeader)
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
