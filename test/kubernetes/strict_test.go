//go:build linux

package kubernetes

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
)

const strictly = "?dryRun=All&fieldValidation=Strict"

// `kubectl apply --dry-run=server --validate=strict`.
func TestManifestPassesTheStrictDryRun(t *testing.T) {
	c := start(t, rig.Options{})
	for _, d := range c.manifest() {
		post := func(yaml []byte) (kube.Answer, error) { return c.api.Do(c.ctx, "POST", d.path+strictly, yaml) }
		got, err := post(d.yaml)
		if err != nil {
			t.Errorf("%s %s: %v", d.kind, d.name, err)
		}
		for _, warning := range got.Warnings {
			t.Errorf("%s %s: the apiserver warns: %s", d.kind, d.name, warning)
		}
		if d.kind == "ConfigMap" {
			var stored object
			harness.Check(c, json.Unmarshal(got.Body, &stored))
			if _, err := config.Parse("cniscope.toml", []byte(stored.text("data", "cniscope.toml"))); err != nil {
				t.Errorf("the options in the ConfigMap: %v", err)
			}
		}
		// A misspelled field is refused.
		_, err = post(bytes.Replace(d.yaml, []byte("\nmetadata:"), []byte("\nmisspelt: true\nmetadata:"), 1))
		if err == nil || !strings.Contains(err.Error(), `unknown field "misspelt"`) {
			t.Errorf("%s %s with a misspelt field: %v, want a refusal", d.kind, d.name, err)
		}
		if d.kind == "Namespace" {
			_, err := c.api.Do(c.ctx, "POST", d.path, d.yaml)
			harness.Check(c, err)
		}
	}
}
