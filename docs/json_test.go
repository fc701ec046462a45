package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated anew")

// shape is as much of a schema as a reader needs.
type shape struct {
	Ref         string           `json:"$ref"`
	Type        string           `json:"type"`
	Description string           `json:"description"`
	Const       any              `json:"const"`
	Enum        []any            `json:"enum"`
	Required    []string         `json:"required"`
	Properties  map[string]shape `json:"properties"`
	Items       *shape           `json:"items"`
	Defs        map[string]shape `json:"$defs"`
	OneOf       []shape          `json:"oneOf"`
}

// The tables of json.md are what the schemas say; make golden writes them.
func TestGoldenDocumentsOfJSON(t *testing.T) {
	text, _ := read(t, "json.md")
	schemas, err := filepath.Glob("schemas/*.json")
	if err != nil || len(schemas) == 0 {
		t.Fatal("no schemas: ", err)
	}
	want := text
	for _, file := range schemas {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s shape
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		place := regexp.MustCompile("(?s)(<!-- generated: " + regexp.QuoteMeta(name) + " -->\n).*?(<!-- end -->)")
		if !place.MatchString(want) {
			t.Errorf("json.md has no place for %s", name)
		}
		want = place.ReplaceAllStringFunc(want, func(string) string {
			return "<!-- generated: " + name + " -->\n" + tables(s) + "<!-- end -->"
		})
	}
	if want == text {
		return
	}
	if !*update {
		t.Fatal("json.md is not what docs/schemas say: make golden")
	}
	if err := os.WriteFile("json.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tables has one for the document and one for each kind of object in it.
func tables(s shape) string {
	var b strings.Builder
	b.WriteString(s.table(""))
	for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
		if def := s.Defs[name]; len(def.Properties) > 0 {
			b.WriteString("\n" + def.table(name))
		} else {
			b.WriteString("\n**" + name + "**: " + def.Description + " One of " + def.choices() + ".\n")
		}
	}
	return b.String()
}

func (s shape) choices() string {
	var all []string
	for _, one := range s.OneOf {
		for name := range one.Properties {
			all = append(all, "`"+name+"`")
		}
	}
	return strings.Join(all, ", ")
}

func (s shape) table(name string) string {
	var b strings.Builder
	if name != "" {
		fmt.Fprintf(&b, "**%s**: ", name)
	}
	fmt.Fprintf(&b, "%s\n\n| field | type | meaning |\n|---|---|---|\n", s.Description)
	fields := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		return strings.Compare(s.place(a)+a, s.place(b)+b)
	})
	for _, field := range fields {
		about := s.Properties[field]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, about.kind(), strings.ReplaceAll(about.says(), "|", "\\|"))
		if about.Type == "object" && len(about.Properties) > 0 {
			for _, below := range slices.Sorted(maps.Keys(about.Properties)) {
				inner := about.Properties[below]
				fmt.Fprintf(&b, "| `%s.%s` | %s | %s |\n", field, below, inner.kind(), inner.says())
			}
		}
	}
	return b.String()
}

// place sorts what is always there before what may be absent.
func (s shape) place(field string) string {
	if i := slices.Index(s.Required, field); i >= 0 {
		return fmt.Sprintf("0%03d", i)
	}
	return "1"
}

func (s shape) kind() string {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/")
	case s.Items != nil:
		return s.Items.kind() + "[]"
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Enum != nil:
		return "one of"
	}
	return s.Type
}

func (s shape) says() string {
	if s.Enum == nil {
		return s.Description
	}
	var all []string
	for _, v := range s.Enum {
		all = append(all, fmt.Sprintf("`%v`", v))
	}
	return strings.Join(all, ", ") + ". " + s.Description
}
