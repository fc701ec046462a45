package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

func TestDocumentsAreAsTheSchemasSay(t *testing.T) {
	a := clusterOf(12)
	a.Spans = otlptest.Encoded(t, whole)
	config := a.start(t)
	for name, args := range map[string][]string{
		"why": {"why", "web-0"}, "ps": {"ps", "-A"}, "doctor": {"doctor", "-A"}, "top": {"top"},
	} {
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft2020)
		compiler.AssertFormat()
		schema := harness.Must(compiler.Compile(filepath.FromSlash("../../docs/schemas/kubectl-" + name + ".json")))(t)
		r := kubectl(t, config, append(args, "--format", "json")...)
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(r.out))
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", name, err, r.out, r.said)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
