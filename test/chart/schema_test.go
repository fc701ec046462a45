//go:build linux

package chart

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Helm refuses wrong values before anything reaches the cluster, and the message names them.
func TestWrongValuesAreRefused(t *testing.T) {
	h := New(t)
	for set, says := range map[string]string{
		"profile=gcp":                                         "'/profile': value must be one of 'generic', 'gke'",
		"imag.tag=x":                                          "'imag' not allowed",
		"options.sampling.ration=0.5":                         "'/options/sampling': additional properties 'ration' not allowed",
		"options.sampling.ratio=2":                            "'/options/sampling/ratio': maximum: got 2, want 1",
		"options.sampling.keep={slow,fast}":                   "'/options/sampling/keep/1': value must be one of",
		"options.slow.call=2":                                 "'/options/slow/call': got number, want string",
		"options.slow.call=2 s":                               "'/options/slow/call': '2 s' does not match",
		"options.export.otlp.endpoint=tempo":                  "'/options/export/otlp/endpoint': 'tempo' does not match",
		"options.export.otlp.endpoint=tempo:4318/v1/traces":   "'/options/export/otlp/endpoint'",
		"options.export.otlp.endpoint=http://me:pass@tempo:1": "'/options/export/otlp/endpoint'",
		"options.export.otlp.compression=zstd":                "'/options/export/otlp/compression': value must be one of 'gzip', 'none'",
		"options.export.spool.dir=/var/spool":                 "'/options/export/spool': additional properties 'dir' not allowed",
		"options.relay.listen=0.0.0.0:4319":                   "'/options/relay/listen'",
		"options.probe.ring=8":                                "'/options/probe/ring'",
		"options.metrics.listen=:9471":                        "'/options': additional properties 'metrics' not allowed",
		"options.limits.processes=many":                       "'/options/limits/processes': got string, want integer",
		"image.registry=https://registry.example":             "'/image/registry'",
		"image.tag=v 1":                                       "'/image/tag'",
		"image.digest=sha256:12":                              "'/image/digest'",
		"image.pullPolicy=Sometimes":                          "'/image/pullPolicy'",
		"imagePullSecrets={a}":                                "'/imagePullSecrets/0': got string, want object",
		"metrics.address=:9471":                               "'/metrics/address'",
		"metrics.address=eth0":                                "'/metrics/address'",
		"metrics.port=70000":                                  "'/metrics/port': maximum: got 70,000, want 65,535",
		"existingSecret=Upper_Case":                           "'/existingSecret'",
		"existingSecret=a,existingConfigMap=b":                "existingSecret and existingConfigMap: give one of them",
		"files.cniscope\\.toml=x":                             "files: cniscope.toml is made of options",
		"podMonitor.enabled=true":                             `set metrics.address="" (every address of the node)`,
		"podMonitor.enabled=yes":                              "'/podMonitor/enabled': got string, want boolean",
		"rbacProxy.enabled=true":                              "rbacProxy was removed in 0.3.0",
		"state.hostPath=/":                                    "'/state/hostPath'",
		"state.hostPath=/run/../etc":                          "'/state/hostPath'",
		"spool.hostPath=spool":                                "'/spool/hostPath'",
		"runtime.mountPropagation=Bidirectional":              "'/runtime/mountPropagation'",
		"nameOverride=UPPER":                                  "'/nameOverride'",
		"resourceQuota.pods=0":                                "'/resourceQuota/pods'",
		"env[0].nam=A":                                        "'/env/0'",
	} {
		t.Run(set, func(t *testing.T) {
			_, err := h.Template(t.Context(), "cniscope", "cniscope", "--set", set)
			if err == nil {
				t.Fatal("it is taken")
			}
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%v\ndoes not say %q", err, says)
			}
		})
	}
}

func TestEachValueIsDescribed(t *testing.T) {
	type property struct {
		Description string
		Properties  map[string]property
	}
	var schema property
	harness.Check(t, json.Unmarshal(harness.Must(os.ReadFile("../../configs/helm/cniscope/values.schema.json"))(t), &schema))
	var visit func(string, property)
	visit = func(path string, p property) {
		if p.Description == "" && path != "" {
			t.Errorf("%s has no description", path[1:])
		}
		for name, child := range p.Properties {
			visit(path+"."+name, child)
		}
	}
	visit("", schema)
}
