// Command generate writes the constants of pkg/attr and tables of docs/spans.md to its arguments.
package main

import (
	"fmt"
	"go/format"
	"log"
	"os"
	"strings"

	"github.com/cniscope/cniscope/pkg/attr/registry"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: generate attr.go spans.md")
	}
	m, err := registry.Load()
	if err != nil {
		log.Fatal(err)
	}
	source, err := format.Source([]byte(code(m)))
	if err != nil {
		log.Fatal(err)
	}
	page, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	for file, content := range map[string][]byte{os.Args[1]: source, os.Args[2]: []byte(document(m, string(page)))} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func code(m *registry.Model) string {
	var b strings.Builder
	b.WriteString("// Code generated from registry/cniscope.yaml. DO NOT EDIT.\n\npackage attr\n\n" +
		"import (\n\"time\"\n\n\"go.opentelemetry.io/otel/attribute\"\n)\n\n// What KindKey can be.\nconst (\n")
	for _, s := range m.Spans {
		fmt.Fprintf(&b, "Kind%s = %q // %s\n", name(s.Value()), s.Value(), s.Name.Note)
	}
	b.WriteString(")\n")
	for _, a := range m.Attributes {
		n, of := name(a.Key), constructors[a.Type]
		if of.value == "" {
			log.Fatalf("%s: there is no type %q", a.Key, a.Type)
		}
		fmt.Fprintf(&b, "\n// %sKey is %s: %s\nconst %sKey = attribute.Key(%q)\n", n, a.Key, a.Brief, n, a.Key)
		fmt.Fprintf(&b, "\nfunc %s(%s) attribute.KeyValue { return "+of.value+" }\n", n, of.parameters, n)
	}
	return b.String()
}

// constructors are by an attribute's type.
var constructors = map[string]struct{ parameters, value string }{
	"string":        {"v string", "%sKey.String(v)"},
	"int":           {"v int", "%sKey.Int(v)"},
	"boolean":       {"v bool", "%sKey.Bool(v)"},
	"double":        {"v time.Duration", "%sKey.Float64(milliseconds(v))"},
	"string[]":      {"v ...string", "%sKey.StringSlice(v)"},
	"template[int]": {"of string, v int", `attribute.Int(string(%sKey)+"."+of, v)`},
}

// name converts cniscope.biggest_part_ms to BiggestPartMS.
func name(key string) string {
	upper := map[string]string{"ips": "IPs", "netns": "NetNS", "ifname": "IfName"}
	for _, s := range []string{"cni", "cpu", "dad", "id", "ip", "ipam", "mac", "ms", "mtu", "pid"} {
		upper[s] = strings.ToUpper(s)
	}
	var b strings.Builder
	parts := strings.FieldsFunc(strings.TrimPrefix(key, "cniscope."), func(r rune) bool {
		return strings.ContainsRune("._ ", r)
	})
	for _, word := range parts {
		if u := upper[word]; u != "" {
			b.WriteString(u)
		} else {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func document(m *registry.Model, page string) string {
	var spans, own, foreign strings.Builder
	spans.WriteString("| name | `cniscope.kind` | one for |\n|---|---|---|\n")
	for _, s := range m.Spans {
		brief := s.Brief
		if s.Kind != "internal" {
			brief += " (kind " + strings.ToUpper(s.Kind) + ")"
		}
		fmt.Fprintf(&spans, "| %s | `%s` | %s |\n", s.Name.Note, s.Value(), brief)
	}
	own.WriteString("| attribute | type | on | meaning |\n|---|---|---|---|\n")
	for _, a := range m.Attributes {
		key := a.Key
		if strings.HasPrefix(a.Type, "template[") {
			key += ".*"
		}
		fmt.Fprintf(&own, "| `%s` | %s | %s | %s |\n", key, a.Type, on(m, a), a.Brief)
	}
	foreign.WriteString("| attribute | on | meaning here |\n|---|---|---|\n")
	for _, a := range m.Foreign {
		fmt.Fprintf(&foreign, "| `%s` | %s | %s |\n", a.Key, on(m, a), a.Brief)
	}
	for _, table := range []struct{ name, rows string }{
		{"spans", spans.String()}, {"attributes", own.String()}, {"foreign", foreign.String()},
	} {
		before, after, found := strings.Cut(page, "<!-- generated: "+table.name+" -->\n")
		_, after, closed := strings.Cut(after, "<!-- end -->")
		if !found || !closed {
			log.Fatalf("the page has no place for %q", table.name)
		}
		page = before + "<!-- generated: " + table.name + " -->\n" + table.rows + "<!-- end -->" + after
	}
	return page
}

func on(m *registry.Model, a *registry.Attribute) string {
	if len(a.Kinds) >= len(m.Spans)-1 {
		return "all"
	}
	return strings.Join(a.Kinds, ", ")
}
