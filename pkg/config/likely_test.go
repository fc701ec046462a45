package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestLikelyMistakes(t *testing.T) {
	const otlp = "[export.otlp]\n"
	for text, want := range map[string]string{
		otlp + `endpoint = "tempo"`:                                 `2:1: export.otlp.endpoint: "tempo" is not a host and a port; write "http://tempo:4317" (the usual port)`,
		otlp + `endpoint = "http://tempo:"`:                         `"" is not a port`,
		otlp + `endpoint = "http:///v1/traces"`:                     `is not a host and a port`,
		otlp + `endpoint = "grpc://tempo:4317"`:                     `"grpc://" is not supported; write "http://tempo:4317"`,
		otlp + `endpoint = "http://tempo:4318/v1/traces?x=y"`:       `has more than a path behind its port; write "http://host:4317", or "http://host:4318/v1/traces"`,
		otlp + `endpoint = "tempo:4317/v1/traces"`:                  `has a path and no scheme; write "http://tempo:4317/v1/traces"`,
		otlp + `endpoint = "https://a:hunter2@${HOST}:4317"`:        `none is replaced in this file`,
		otlp + `endpoint = "grpc://a:hunter2@tempo:4317"`:           `is not supported`,
		otlp + `endpoint = "a:hunter2@tempo"`:                       `send it as a header`,
		otlp + `protocol = "http/protobuf"`:                         `is OTLP over HTTP`,
		otlp + `tls = true`:                                         `an endpoint with https:// is TLS`,
		otlp + `endpont = "http://tempo:4317"`:                      `did you mean export.otlp.endpoint?`,
		otlp + `endpoint = http://tempo:4317`:                       `2:12: is not TOML (unexpected character U+0068 'h' at start of value); write text in quotes: endpoint = "…"`,
		otlp + "endpoint = \"http://tempo:4317":                     `close the quotes`,
		"[export.jaeger]\nendpoint = \"http://a:1\"":                `1:9: export.jaeger: is not a section; Jaeger accepts OTLP`,
		"[exporters]\notlp = 1":                                     `write [export.otlp]`,
		"export:\n  otlp:\n    endpoint: x":                         `this looks like YAML`,
		`{"export": 1}`:                                             `this looks like JSON`,
		"[export.otlp\nendpoint = \"a:1\"":                          `write ] after the section's name`,
		"[slow]\ncommand = \"1s\"\n[slow]\ncall = \"2s\"":           `3:2: is not TOML (table slow already exists); write each [section] once`,
		"[slow]\ncommand = \"250\"":                                 `"250" has no unit; write "250ms" or "250s"`,
		"[slow]\nthreshold = \"1s\"":                                `write command, call, agent or lock`,
		"[sampling]\nratio = 0,1":                                   `write a point before the decimals`,
		"[sampling]\nrate = 0.1":                                    `did you mean sampling.ratio?`,
		"[sampling]\nkeep = [\"fail\"]":                             `did you mean "failed"?`,
		"[metrics]\nlisten = \"9471\"":                              `is a port without an address`,
		"[metrics]\nlisten = \"*:9471\"":                            `write ":9471"`,
		"[metrics]\nenabled = true":                                 `write listen, such as "127.0.0.1:9471"`,
		"[metrics]\nport = 9471":                                    `write listen, such as "127.0.0.1:9471"`,
		"[prometheus]\nlisten = \":1\"":                             `write [metrics]`,
		"[logging]\nlevel = \"info\"":                               `write [log]`,
		"level = \"info\"":                                          `did you mean log.level?`,
		"[log]\nlevel = \"warning\"":                                `did you mean "warn"?`,
		"[log]\nlevel = \"INFO\"":                                   `did you mean "info"?`,
		"[nri]\nenabled = yes":                                      `write true or false, without quotes`,
		"[nri]\nsocket = \"unix:///run/nri.sock\"":                  `is an address, not a path; write "/run/nri.sock"`,
		"[runtime]\nendpoint = \"/run/containerd/containerd.sock\"": `write socket`,
		"[relay]\nlisten = \":4319\"":                               `write "127.0.0.1:4319"`,
		"[relay]\nlisten = \"0.0.0.0:4320\"":                        `can be reached by others; write "127.0.0.1:4320"`,
		"[export.spool]\nmax_bytes = \"256MB\"":                     `write a number with its unit, such as "8MiB"`,
		"[resource]\ncluster = [\"a\"]":                             `write one text, in quotes`,
		"[probe]\ncallers = \"/usr/bin/x\"":                         `is text, not a list; write up to 16 of them, as ["one", "another"]`,
	} {
		refused(t, Default(), text, want)
	}
}

// refused expects an error with a text and without a secret; options in force where want is empty.
func refused(t *testing.T, base Options, text, want string) {
	t.Helper()
	_, err := Source{Base: base, Text: text, TextName: "f"}.Load()
	if said := fmt.Sprint(err); (want == "") != (err == nil) || want != "" && !strings.Contains(said, want) ||
		strings.Contains(said, "hunter2") {
		t.Errorf("%s\n     %s\nwant %s", text, said, want)
	}
}

// They may be intended.
func TestPortsOfOtherProtocols(t *testing.T) {
	for text, want := range map[string]string{
		"[export.otlp]\nendpoint = \"http://tempo-distributor:4318\"\n":                  `:2:1: export.otlp.endpoint: port 4318 is usually that of OTLP over HTTP, and cniscope speaks OTLP over gRPC, since its endpoint has no path: no span would arrive; write "http://tempo-distributor:4318/v1/traces" (the usual port)`,
		"[export.otlp]\nendpoint = \"https://[2001:db8::1]:04318\"\n":                    `write "https://[2001:db8::1]:4318/v1/traces"`,
		"[export.otlp]\nendpoint = \"tempo:4318\"\n":                                     `write "http://tempo:4318/v1/traces"`,
		"[export.otlp]\nendpoint = \"http://tempo:4318/v1/traces\"\n":                    ``,
		"[export.otlp]\nendpoint = \"http://tempo:4317/v1/traces\"\n":                    `port 4317 is usually that of OTLP over gRPC, and cniscope speaks OTLP over HTTP, since its endpoint has a path: no span would arrive; write "http://tempo:4317" (the usual port)`,
		"[export.otlp]\nendpoint = \"http://jaeger:16686\"\n":                            `Jaeger's page`,
		"[relay]\nlisten = \"127.0.0.1:4319\"\nupstream = \"http://127.0.0.1:4318\"\n":   `:3:1: relay.upstream: port 4318`,
		"[export.otlp]\nendpoint = \"http://tempo:4317\"\n":                              ``,
		"[export.otlp]\nendpoint = \"http://tempo\"\n":                                   `port 80 is usually that of web pages, and cniscope speaks OTLP over gRPC, since its endpoint has no path: no span would arrive; write "http://tempo:4317"`,
		"[export.otlp]\nendpoint = \"http://tempo/v1/traces\"\n":                         ``,
		"[export.otlp]\nendpoint = \"https://tempo\"\n":                                  ``,
		"[export.otlp]\nendpoint = \"https://tempo:443\"\n":                              ``,
		"[export.otlp]\nendpoint = \"https://api.vendor.example:14317\"\n":               ``,
		"[metrics]\nlisten = \"127.0.0.1:9090\"\n[relay]\nlisten = \"127.0.0.1:4318\"\n": ``,
	} {
		warned(t, text, want)
	}
}
