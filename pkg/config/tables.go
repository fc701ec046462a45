package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

// entries reads a table of strings. Tables in it are dotted keys that were
// written without quotes: service.name = "x" is TOML for a table service.
// Values never get into an error.
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
	"service.name":        "take it out: it is always cniscope",
	"service.version":     "take it out: cniscope sets it",
	"service.instance.id": "take it out: cniscope sets it",
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

// checkHeader refuses what gRPC would refuse at every single request (PROTOCOL-HTTP2,
// "Custom-Metadata").
func checkHeader(key, value string) *fault {
	lower := strings.ToLower(key)
	if lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return wrong("use letters, digits, -, _ and .", "is not the name of a header")
	}
	if strings.HasPrefix(lower, "grpc-") {
		return wrong("take it out", "belongs to gRPC itself")
	}
	if len(value) > maxHeaderBytes {
		return wrong(fmt.Sprintf("shorten it to %d bytes", maxHeaderBytes), "has %d bytes", len(value))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return wrong("use printable ASCII; encode what is not", "holds characters that cannot be sent")
	}
	return nil
}
