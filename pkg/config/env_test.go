package config

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestTheEnvironmentStandsBelowTheFile(t *testing.T) {
	tests := []struct {
		name string
		vars map[string]string
		file string
		want func(*Options)
	}{
		{"nothing is set", nil, "", func(o *Options) { o.Resource.Node = "host" }},
		{"the node's name", map[string]string{"NODE_NAME": "node-7"}, "", func(o *Options) { o.Resource.Node = "node-7" }},
		{"the file is stronger", map[string]string{"NODE_NAME": "node-7"}, `resource.node = "n"`, func(o *Options) { o.Resource.Node = "n" }},
		{"every OTLP variable", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT":           "collector:4317",
			"OTEL_EXPORTER_OTLP_INSECURE":           "TRUE",
			"OTEL_EXPORTER_OTLP_CERTIFICATE":        "/ca",
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/cert",
			"OTEL_EXPORTER_OTLP_CLIENT_KEY":         "/key",
			"OTEL_EXPORTER_OTLP_HEADERS":            "authorization=Bearer%20x, tenant = a ,",
			"OTEL_EXPORTER_OTLP_COMPRESSION":        "gzip",
			"OTEL_EXPORTER_OTLP_TIMEOUT":            "2500",
			"OTEL_EXPORTER_OTLP_PROTOCOL":           "grpc",
		}, "", func(o *Options) {
			o.Resource.Node = "host"
			o.Export.OTLP = OTLP{
				Endpoint: "collector:4317", Insecure: true,
				CA: "/ca", Cert: "/cert", Key: "/key",
				Headers:     map[string]Secret{"authorization": NewSecret("Bearer x"), "tenant": NewSecret("a")},
				Compression: "gzip", Timeout: 2500 * time.Millisecond,
			}
		}},
		{"the variable for traces first", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT":        "http://a:4317",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:4317",
		}, "", func(o *Options) { o.Resource.Node, o.Export.OTLP.Endpoint = "host", "http://b:4317" }},
		{"the file speaks of the endpoint only", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT":    "https://a:4317",
			"OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca",
			"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
		}, `export.otlp.endpoint = "http://b:4317"`, func(o *Options) {
			o.Resource.Node = "host"
			o.Export.OTLP.Endpoint, o.Export.OTLP.CA, o.Export.OTLP.Compression = "http://b:4317", "/ca", "gzip"
		}},
		{"what containerd leaks is not read", map[string]string{
			"OTEL_SERVICE_NAME": "containerd", "OTEL_RESOURCE_ATTRIBUTES": "a=b", "OTEL_TRACES_SAMPLER": "always_off",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		}, "", func(o *Options) { o.Resource.Node = "host" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base, err := FromEnvironment(env(tt.vars), "host")
			harness.Check(t, err)
			got, err := base.Overlay("f.toml", []byte(tt.file))
			harness.Check(t, err)
			want := Default()
			tt.want(&want)
			harness.DeepEqual(t, got, want, got.TOML(), want.TOML())
		})
	}
}

func TestAWrongEnvironmentNamesTheVariable(t *testing.T) {
	_, err := FromEnvironment(env(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":       "http://a:4318/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "soon",
		"OTEL_EXPORTER_OTLP_HEADERS":        "grpc-x=hunter2",
		"OTEL_EXPORTER_OTLP_COMPRESSION":    "zstd",
	}), "host")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"environment: OTEL_EXPORTER_OTLP_ENDPOINT: has a path",
		"environment: OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: \"soon\" is not a duration",
		"environment: OTEL_EXPORTER_OTLP_HEADERS.grpc-x: belongs to gRPC itself",
		"environment: OTEL_EXPORTER_OTLP_COMPRESSION: \"zstd\" is not known",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("shows a header")
	}
	_, err = FromEnvironment(env(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
	}), "host")
	if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_PROTOCOL: \"http/json\" is not supported: set it to grpc or http/protobuf") {
		t.Errorf("%v", err)
	}
}

// OpenTelemetry specification, protocol/exporter.
func TestTheProtocolOfTheEnvironment(t *testing.T) {
	const all, traces, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	for _, tt := range []struct {
		vars       map[string]string
		host, path string
	}{
		{map[string]string{all: "http://a:4317", protocol: "grpc"}, "a:4317", ""},
		{map[string]string{all: "http://a:4317/ignored", protocol: "grpc"}, "a:4317", ""},
		{map[string]string{all: "http://a:4317/"}, "a:4317", ""},
		{map[string]string{all: "http://a:4318", protocol: "http/protobuf"}, "a:4318", "/v1/traces"},
		{map[string]string{all: "https://a:443/otlp/", protocol: "http/protobuf"}, "a:443", "/otlp/v1/traces"},
		{map[string]string{traces: "https://a:443/otlp/v1/t", protocol: "http/protobuf"}, "a:443", "/otlp/v1/t"},
		{map[string]string{traces: "https://a:443", protocol: "http/protobuf"}, "a:443", "/v1/traces"},
		{map[string]string{all: "http://a:4317", protocol: "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "a:4317", ""},
	} {
		o, err := FromEnvironment(env(tt.vars), "host")
		host, _ := o.Export.OTLP.Target()
		if path := o.Export.OTLP.Path(); err != nil || host != tt.host || path != tt.path {
			t.Errorf("%v: %s %s, %v", tt.vars, host, path, err)
		}
	}
}
