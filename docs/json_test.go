package docs

import (
	"path/filepath"
	"strings"
	"testing"
)

// json.md leads to every schema; that its links are valid is another test's.
func TestEverySchemaCanBeFound(t *testing.T) {
	text, _ := read(t, "json.md")
	schemas, err := filepath.Glob("schemas/*.json")
	if err != nil || len(schemas) == 0 {
		t.Fatal("no schemas: ", err)
	}
	for _, schema := range schemas {
		if !strings.Contains(text, "]("+filepath.ToSlash(schema)+")") {
			t.Errorf("json.md does not lead to %s", schema)
		}
	}
}
