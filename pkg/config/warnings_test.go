package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestARelayToItselfIsFoundInAnySpelling(t *testing.T) {
	for listen, upstreams := range map[string]map[string]bool{
		"127.0.0.1:4319": {
			"http://127.0.0.1:4319": true, "http://localhost:4319": true, "http://LocalHost.:4319": true, "http://x.localhost:4319": true,
			"http://0.0.0.0:4319": true, "http://[::]:4319": true, "http://[::ffff:127.0.0.1]:4319": true,
			"http://127.0.0.1:04319": true, "https://127.0.0.1:4319/": true, "127.0.0.1:4319": true,
			"http://127.0.0.1:4317": false, "http://127.0.0.2:4319": false, "http://[::1]:4319": false, "http://192.0.2.1:4319": false,
		},
		"[::1]:4319":              {"http://[::1]:4319": true, "http://[0:0::1]:4319": true, "http://localhost:4319": true, "http://127.0.0.1:4319": false},
		"[::ffff:127.0.0.1]:4319": {"http://127.0.0.1:4319": true},
	} {
		for upstream, loop := range upstreams {
			for _, text := range []string{
				"[relay]\nlisten = \"" + listen + "\"\nupstream = \"" + upstream + "\"\n",
				"[relay]\nlisten = \"" + listen + "\"\n[export.otlp]\nendpoint = \"" + upstream + "\"\n",
			} {
				_, err := Parse("f.toml", []byte(text))
				if found := err != nil && strings.Contains(err.Error(), "would send to itself"); found != loop {
					t.Errorf("%s to %s: %v", listen, upstream, err)
				}
			}
		}
	}
}

func TestATokenInPlainTextToAnotherMachineIsAWarning(t *testing.T) {
	const headers = "headers = { authorization = \"Bearer hunter2\" }\n"
	for _, test := range []struct{ name, text, want string }{
		{"another machine", "[export.otlp]\nendpoint = \"http://192.0.2.1:4317\"\n" + headers, `:3:1: export.otlp.headers: "authorization" is sent to "http://192.0.2.1:4317" in plain text`},
		{"one that cannot be found", "[export.otlp]\nendpoint = \"http://collector.invalid:4317\"\n" + headers, ":3:1: export.otlp.headers: "},
		{"without a scheme", "[export.otlp]\nendpoint = \"192.0.2.1:4317\"\ninsecure = true\n" + headers, ":4:1: export.otlp.headers: "},
		{"another machine by the relay", "[export.otlp]\n" + headers + "[relay]\nlisten = \"127.0.0.1:4319\"\nupstream = \"http://192.0.2.1:4317\"\n", ":5:1: relay.upstream: \"authorization\" is sent to"},
		{"TLS", "[export.otlp]\nendpoint = \"https://192.0.2.1:4317\"\n" + headers, ""},
		{"this machine", "[export.otlp]\nendpoint = \"http://127.0.0.1:4317\"\n" + headers, ""},
		{"this machine by name", "[export.otlp]\nendpoint = \"http://localhost:4317\"\n" + headers, ""},
		{"no headers", "[export.otlp]\nendpoint = \"http://192.0.2.1:4317\"\n", ""},
		{"a relay that is off", "[export.otlp]\n" + headers + "[relay]\nupstream = \"http://192.0.2.1:4317\"\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			warned(t, test.text, test.want)
		})
	}
}

func TestAnAttributeOfThePodIsAWarning(t *testing.T) {
	warned(t, "[resource]\nattributes = { \"k8s.pod.name\" = \"x\" }\n", `:2:1: resource.attributes: "k8s.pod.name" has no effect`)
	warned(t, "[resource]\nattributes = { \"k8s.cluster.uid\" = \"x\" }\n", "")
}

// warned expects a warning with a text and without a secret; none where want is empty. DNS is not asked.
func warned(t *testing.T, text, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f.toml")
	harness.Check(t, os.WriteFile(file, []byte(text), 0o600))
	source := Source{Base: Default(), Path: file}
	o := harness.Must(source.Load())(t)
	unasked, cancel := context.WithCancel(t.Context())
	cancel()
	said := ""
	for _, w := range source.Warnings(unasked, o) {
		said += w.Error() + "\n"
	}
	if (want == "") != (said == "") || !strings.Contains(said, want) || strings.Contains(said, "hunter2") {
		t.Errorf("%s\n     %s\nwant %s", text, said, want)
	}
}
