package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func env(vars map[string]string) (environ []string) {
	for name, value := range vars {
		environ = append(environ, name+"="+value)
	}
	return environ
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
				Headers:     map[string]Secret{"authorization": newSecret("Bearer x"), "tenant": newSecret("a")},
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
		// The file's options are not judged in the environment.
		{"a wrong protocol below an endpoint of the file", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		}, `export.otlp.endpoint = "http://b:4317"`, func(o *Options) { o.Resource.Node, o.Export.OTLP.Endpoint = "host", "http://b:4317" }},
		{
			"a wrong timeout below one of the file",
			map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
			`export.otlp.timeout = "3s"`, func(o *Options) { o.Resource.Node, o.Export.OTLP.Timeout = "host", 3*time.Second },
		},
		{
			"sampling of the file",
			map[string]string{"OTEL_TRACES_SAMPLER": "always_off"},
			"[sampling]\nratio = 0.5\nkeep = [\"slow\"]", func(o *Options) {
				o.Resource.Node, o.Sampling.Ratio, o.Sampling.Keep, o.Sampling.ParentBased = "host", 0.5, []string{"slow"}, false
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := harness.Must(over(FromEnvironment(env(tt.vars), "host"), tt.file))(t)
			want := Default()
			tt.want(&want)
			harness.DeepEqual(t, got, want, got.TOML(), want.TOML())
		})
	}
}

func TestAWrongEnvironmentNamesTheVariable(t *testing.T) {
	_, err := Source{Base: FromEnvironment(env(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":    "http://a:4318/v1/traces",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca.pem",
	}), "host")}.Load()
	harness.Says(t, fmt.Sprint(err), "environment: OTEL_EXPORTER_OTLP_ENDPOINT: has a path",
		"environment: OTEL_EXPORTER_OTLP_CERTIFICATE: \"ca.pem\" is not an absolute path")
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
		{map[string]string{all: "https://api.honeycomb.io", protocol: "http/protobuf"}, "api.honeycomb.io:443", "/v1/traces"},
		{map[string]string{all: "https://api.honeycomb.io"}, "api.honeycomb.io:443", ""},
		{map[string]string{traces: "https://a:443/otlp/v1/t", protocol: "http/protobuf"}, "a:443", "/otlp/v1/t"},
		{map[string]string{traces: "https://a:443", protocol: "http/protobuf"}, "a:443", "/"}, // as is
		{map[string]string{traces: "http://h:4318/", protocol: "http/protobuf"}, "h:4318", "/"},
		{map[string]string{traces: "http://h:4317/", protocol: "grpc"}, "h:4317", ""},
		{map[string]string{all: "http://a:4317", protocol: "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "a:4317", ""},
	} {
		o, err := Source{Base: FromEnvironment(env(tt.vars), "host")}.Load()
		host, _ := o.Export.OTLP.Target()
		if path := o.Export.OTLP.Path(); err != nil || host != tt.host || path != tt.path {
			t.Errorf("%v: %s %s, %v", tt.vars, host, path, err)
		}
		again, err := Parse("the printed file", []byte(o.TOML()))
		if printed := again.Export.OTLP; err != nil || printed.Endpoint != o.Export.OTLP.Endpoint || printed.Path() != tt.path {
			t.Errorf("%v: printed: %s, %v", tt.vars, printed.Endpoint, err)
		}
	}
}

// Variables of the specification (configuration/sdk-environment-variables, protocol/exporter) with the options that
// they change, and the variables that a warning names.
func TestTheVariablesOfOpenTelemetry(t *testing.T) {
	const endpoint, warns = "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 ", "! "
	const exported = `export.otlp.endpoint="http://c:4317"`
	for environ, want := range map[string]string{
		endpoint:                                                                    exported,
		endpoint + "OTEL_SDK_DISABLED=true":                                         "",
		endpoint + "OTEL_SDK_DISABLED=TRUE":                                         "",
		endpoint + "OTEL_SDK_DISABLED=false":                                        exported,
		endpoint + "OTEL_SDK_DISABLED=":                                             exported,
		endpoint + "OTEL_SDK_DISABLED=1":                                            exported + warns + "OTEL_SDK_DISABLED",
		endpoint + "OTEL_TRACES_EXPORTER=otlp":                                      exported,
		endpoint + "OTEL_TRACES_EXPORTER=none":                                      "",
		endpoint + "OTEL_TRACES_EXPORTER=otlp,console":                              exported + warns + "OTEL_TRACES_EXPORTER",
		endpoint + "OTEL_TRACES_EXPORTER=zipkin":                                    warns + "OTEL_TRACES_EXPORTER",
		endpoint + "OTEL_EXPORTER_OTLP_INSECURE=yes":                                exported + warns + "OTEL_EXPORTER_OTLP_INSECURE",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":                                 "",
		"OTEL_TRACES_SAMPLER=always_on":                                             "sampling.parent_based=false",
		"OTEL_TRACES_SAMPLER=always_off":                                            "sampling.ratio=0.0 sampling.parent_based=false sampling.keep=[]",
		"OTEL_TRACES_SAMPLER=traceidratio":                                          "sampling.parent_based=false",
		"OTEL_TRACES_SAMPLER_ARG=0.1":                                               "",
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.1":              "sampling.ratio=0.1 sampling.parent_based=false",
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2":                "sampling.parent_based=false" + warns + "OTEL_TRACES_SAMPLER_ARG",
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN":              "sampling.parent_based=false" + warns + "OTEL_TRACES_SAMPLER_ARG",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.25": "sampling.ratio=0.25",
		"OTEL_TRACES_SAMPLER=parentbased_always_off":                                "sampling.ratio=0.0 sampling.keep=[]",
		"OTEL_TRACES_SAMPLER=jaeger_remote OTEL_TRACES_SAMPLER_ARG=endpoint=x":      warns + "OTEL_TRACES_SAMPLER",
		"OTEL_SERVICE_NAME=net":                                                     `resource.attributes={ "service.name" = "net" }`,
		"OTEL_RESOURCE_ATTRIBUTES=team=a%20b,service.name=x OTEL_SERVICE_NAME=net":  `resource.attributes={ "service.name" = "net", team = "a b" }`,
		// These would describe cniscope's own pod.
		"OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=cniscope-x,team=a": `resource.attributes={ team = "a" }` + warns + "OTEL_RESOURCE_ATTRIBUTES.k8s.pod.name",
		"OTEL_RESOURCE_ATTRIBUTES=service.version=7":              warns + "OTEL_RESOURCE_ATTRIBUTES.service.version",
		"OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none":      "",
		"OTEL_METRICS_EXPORTER=otlp":                              warns + "OTEL_METRICS_EXPORTER",
		"SOMETHING_ELSE=x":                                        "",

		// The specification has an implementation warn of what it cannot parse or does not know, and ignore it.
		endpoint + "OTEL_EXPORTER_OTLP_PROTOCOL=http/json":                                 exported + warns + "OTEL_EXPORTER_OTLP_PROTOCOL",
		endpoint + "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=x OTEL_EXPORTER_OTLP_PROTOCOL=grpc": exported + warns + "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zstd":                                              warns + "OTEL_EXPORTER_OTLP_COMPRESSION",
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=zstd OTEL_EXPORTER_OTLP_COMPRESSION=gzip":   `export.otlp.compression="gzip"` + warns + "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
		"OTEL_EXPORTER_OTLP_TIMEOUT=-1":                                                    warns + "OTEL_EXPORTER_OTLP_TIMEOUT",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=soon OTEL_EXPORTER_OTLP_TIMEOUT=9":              warns + "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT" + warns + "OTEL_EXPORTER_OTLP_TIMEOUT",
		"OTEL_EXPORTER_OTLP_HEADERS=grpc-x=hunter2":                                        warns + "OTEL_EXPORTER_OTLP_HEADERS.grpc-x",

		"OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=most": warns + "OTEL_TRACES_SAMPLER_ARG",
		// Enum values know no case.
		"OTEL_TRACES_SAMPLER=PARENTBASED_ALWAYS_OFF":                                                  "sampling.ratio=0.0 sampling.keep=[]",
		"OTEL_EXPORTER_OTLP_COMPRESSION=GZIP":                                                         `export.otlp.compression="gzip"`,
		"OTEL_METRICS_EXPORTER=None OTEL_TRACES_EXPORTER=OTLP OTEL_EXPORTER_OTLP_ENDPOINT=HTTP://c:1": `export.otlp.endpoint="http://c:1"`,
		endpoint + "OTEL_TRACES_EXPORTER=None":                                                        "",
		endpoint + "OTEL_EXPORTER_OTLP_PROTOCOL=HTTP/Protobuf":                                        `export.otlp.endpoint="http://c:4317/v1/traces"`,

		// A disabled exporter needs no valid variables.
		"OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=? OTEL_EXPORTER_OTLP_CERTIFICATE=ca.pem OTEL_EXPORTER_OTLP_TIMEOUT=-1":          "",
		"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=key.pem OTEL_EXPORTER_OTLP_HEADERS=x OTEL_EXPORTER_OTLP_PROTOCOL=x": "",
	} {
		checkVariables(t, environ, want)
	}
	for _, name := range strings.Fields(`OTEL_ENTITIES OTEL_LOG_LEVEL OTEL_PROPAGATORS OTEL_CONFIG_FILE OTEL_BSP_SCHEDULE_DELAY
		OTEL_BSP_EXPORT_TIMEOUT OTEL_BSP_MAX_QUEUE_SIZE OTEL_BSP_MAX_EXPORT_BATCH_SIZE OTEL_BLRP_SCHEDULE_DELAY
		OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT OTEL_ATTRIBUTE_COUNT_LIMIT OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT
		OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT OTEL_SPAN_EVENT_COUNT_LIMIT OTEL_SPAN_LINK_COUNT_LIMIT
		OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT OTEL_LINK_ATTRIBUTE_COUNT_LIMIT OTEL_EXPORTER_ZIPKIN_ENDPOINT
		OTEL_EXPORTER_ZIPKIN_TIMEOUT OTEL_EXPORTER_PROMETHEUS_HOST OTEL_EXPORTER_PROMETHEUS_PORT OTEL_METRICS_EXEMPLAR_FILTER
		OTEL_METRIC_EXPORT_INTERVAL OTEL_METRIC_EXPORT_TIMEOUT OTEL_LOGS_EXPORTER OTEL_EXPORTER_OTLP_METRICS_ENDPOINT
		OTEL_EXPORTER_OTLP_LOGS_ENDPOINT OTEL_EXPORTER_OTLP_SPAN_INSECURE`) {
		checkVariables(t, name+"=7", warns+name)
		checkVariables(t, name+"=", "")
	}
}

// The path of the file's endpoint says the protocol, so the file wins; a variable that differs is named.
func TestAProtocolBelowAnEndpointOfTheFile(t *testing.T) {
	for _, tt := range []struct{ protocol, endpoint, want string }{
		{"http/protobuf", "http://b:4317", "OTEL_EXPORTER_OTLP_PROTOCOL: has no effect: endpoint has no path, so it is for OTLP over gRPC; "},
		{"grpc", "http://b:4318/v1/traces", "OTEL_EXPORTER_OTLP_PROTOCOL: has no effect: endpoint has a path, so it is for OTLP over HTTP; "},
		{"grpc", "http://b:4317", "[]"},
		{"http/protobuf", "http://b:4318/v1/traces", "[]"},
		{"http/protobuf", "", "[]"},
	} {
		source := Source{Base: FromEnvironment([]string{"OTEL_EXPORTER_OTLP_PROTOCOL=" + tt.protocol}, "host"), Text: "export.otlp.endpoint = " + quote(tt.endpoint)}
		o := harness.Must(source.Load())(t)
		harness.Equal(t, o.Export.OTLP.Endpoint, tt.endpoint, tt.protocol)
		harness.Says(t, fmt.Sprint(source.Warnings(t.Context(), o)), tt.want)
	}
}

func checkVariables(t *testing.T, environ, want string) {
	t.Helper()
	base := FromEnvironment(strings.Fields(environ), "host")
	o, err := Source{Base: base}.Load()
	if err != nil {
		t.Errorf("%s: %v", environ, err)
		return
	}
	var got []string
	usual := Default()
	for _, opt := range o.system.settable() {
		if v := opt.of(&o).Interface(); opt.key != "resource.node" && !reflect.DeepEqual(v, opt.of(&usual).Interface()) {
			got = append(got, fmt.Sprintf("%s=%s", opt.key, opt.toml(v)))
		}
	}
	said := strings.Join(got, " ")
	for _, w := range (Source{Base: base}).Warnings(t.Context(), o) {
		if w.Source == "environment" {
			said += "! " + w.Key
		}
		if strings.Contains(w.Error(), "hunter2") {
			t.Errorf("%s: shows a header", environ)
		}
	}
	if said != want {
		t.Errorf("%s:\n%s, want\n%s", environ, said, want)
	}
}

// A token without its header's name was logged once.
func TestATokenInPlaceOfANameIsNotRepeated(t *testing.T) {
	const token = "Xq7CanaryTokenZ9t4421"
	for _, headers := range []string{"Bearer " + token, token, "x=1,Bearer " + token, "Bearer " + token + "=", "authorization: Bearer " + token} {
		source := Source{Base: FromEnvironment([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1", "OTEL_EXPORTER_OTLP_HEADERS=" + headers}, "host")}
		said := fmt.Sprint(source.Warnings(t.Context(), source.Base))
		if strings.Contains(said, token) || !strings.Contains(said, "OTEL_EXPORTER_OTLP_HEADERS: "+noHeader) {
			t.Errorf("%s: %s", headers, said)
		}
	}
	for _, key := range []string{`"Bearer ` + token + `"`, `x."Bearer ` + token + `"`, `"` + token + `é".a`} {
		_, err := Parse("x.toml", []byte("[export.otlp]\nendpoint = \"h:1\"\nheaders = { "+key+" = \"x\" }\n"))
		if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "x.toml:3:1: export.otlp.headers: "+noHeader) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
