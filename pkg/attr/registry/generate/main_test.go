package main

import (
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/attr/registry"
	"github.com/cniscope/cniscope/test/harness"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	m := load(t)
	source := harness.Must(format.Source([]byte(code(m))))(t)
	if string(source) != read(t, "../../attr.go") {
		t.Error("pkg/attr/attr.go is not what the registry gives: go generate ./pkg/attr")
	}
	page := read(t, "../../../../docs/spans.md")
	harness.Equal(t, document(m, page), page, "docs/spans.md is not what the registry gives: go generate ./pkg/attr")
}

func TestDocumentsAndExamplesKnowTheAttributes(t *testing.T) {
	m := load(t)
	key := regexp.MustCompile(`(?:^|[^\w./@-]|\bspan\.)((?:cniscope|cni)\.[a-z_]+(?:\.[a-z_]+)*)(?:$|[^\w./*-])`)
	// Other keys with that prefix: containerd's own, files, and options.
	others := regexp.MustCompile(`^(cni\.(conf_dir|setup_pod_network|setup|exclusive|log|sock|rec|html)|cniscope\.(dev|exe|key|toml|conf|rec|sock|service|cniscope|io|json|yaml))\b`)
	var documents []string
	for _, pattern := range []string{"../../../../docs/*.md", "../../../../docs/contributing/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no documents: %v", err)
		}
		documents = append(documents, found...)
	}
	for _, file := range append(documents, []string{
		"README.md", "examples/collector/config.yaml", "examples/jaeger/README.md", "examples/prometheus/alerts.yaml", "examples/grafana/cniscope.json",
	}...) {
		text, _, _ := strings.Cut(read(t, filepath.Join("../../../..", strings.TrimPrefix(file, "../../../../"))), "\n## Renamed") // former names
		for _, found := range key.FindAllStringSubmatch(text, -1) {
			if m.Attribute(found[1]) == nil && !others.MatchString(found[1]) {
				t.Errorf("%s speaks of %s, which the registry does not have", file, found[1])
			}
		}
	}
}

func load(t *testing.T) *registry.Model {
	t.Helper()
	m := harness.Must(registry.Load())(t)
	for _, a := range m.Attributes {
		if len(a.Kinds) == 0 || a.Type == "" || a.Brief == "" || a.Stability == "" {
			t.Errorf("%s is incomplete, or on no span", a.Key)
		}
		harness.Equal(t, a.Type == "double", strings.HasSuffix(a.Key, "_ms"), a.Key, "is a time in milliseconds, a double")
	}
	return m
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(harness.Must(os.ReadFile(path))(t))
}
