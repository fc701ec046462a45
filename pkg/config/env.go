package config

import (
	"net/url"
	"strconv"
	"strings"
)

// FromEnvironment returns the defaults, changed by the environment: NODE_NAME, else hostname, is the node; the
// OpenTelemetry specification's OTEL_EXPORTER_OTLP_ variables set the OTLP destination, with precedence for those
// with TRACES_.
//
// Other OTEL_ variables are ignored, because containerd passes its own OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// to plugins.
//
// The error is Problems, with the variables as keys.
func FromEnvironment(getenv func(string) string, hostname string) (Options, error) {
	o := Default()
	o.Resource.Node = hostname
	e := environment{getenv: getenv, into: &o}
	e.set("resource.node", verbatim, "NODE_NAME")
	e.endpoint()
	e.otlp("INSECURE", "insecure", func(s string) any { return strings.EqualFold(s, "true") })
	e.otlp("CERTIFICATE", "ca", verbatim)
	e.otlp("CLIENT_CERTIFICATE", "cert", verbatim)
	e.otlp("CLIENT_KEY", "key", verbatim)
	e.otlp("HEADERS", "headers", pairs)
	e.otlp("COMPRESSION", "compression", verbatim)
	e.otlp("TIMEOUT", "timeout", milliseconds)
	return o, e.problems.err()
}

type environment struct {
	getenv   func(string) string
	into     *Options
	problems Problems
}

// first returns the first variable with a value. An empty one counts as unset (OpenTelemetry specification,
// configuration/sdk-environment-variables).
func (e *environment) first(names ...string) (value, name string) {
	for _, name := range names {
		if value := strings.TrimSpace(e.getenv(name)); value != "" {
			return value, name
		}
	}
	return "", ""
}

func (e *environment) set(key string, decode func(string) any, names ...string) {
	value, name := e.first(names...)
	if value == "" {
		return
	}
	e.assign(key, decode(value), name)
}

func (e *environment) assign(key string, value any, variable string) {
	for _, opt := range e.into.system.settable() {
		if opt.key != key {
			continue
		}
		for _, f := range opt.set(e.into, value) {
			e.report(variable+f.under, f.what, f.remedy)
		}
	}
}

// otlp sets an OTLP option from its variable; the one for traces has precedence.
func (e *environment) otlp(variable, key string, decode func(string) any) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	e.set("export.otlp."+key, decode, prefix+"TRACES_"+variable, prefix+variable)
}

// endpoint sets the endpoint: without a path for gRPC, the default, and with one for HTTP, which appends the traces
// path to the endpoint of all signals (OpenTelemetry specification, protocol/exporter).
func (e *environment) endpoint() {
	const name = "OTEL_EXPORTER_OTLP_ENDPOINT"
	value, from := e.first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", name)
	if value == "" {
		return
	}
	protocol, said := e.first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch path := (OTLP{Endpoint: value}).Path(); {
	case protocol == "" && path != "":
		e.report(from, "has a path: OTLP over gRPC has none",
			`set OTEL_EXPORTER_OTLP_PROTOCOL to "http/protobuf", or remove the path`)
		return
	case protocol != "" && protocol != "grpc" && protocol != "http/protobuf":
		e.report(said, quoted(protocol)+" is not supported",
			"set it to grpc or http/protobuf, or unset "+from+" and set endpoint in [export.otlp]")
		return
	case protocol == "grpc" && path != "":
		value = strings.TrimSuffix(value, path) // gRPC ignores the path (same specification)
	case protocol == "http/protobuf" && (from == name || path == ""):
		value = strings.TrimSuffix(value, "/") + "/v1/traces"
	}
	e.assign("export.otlp.endpoint", value, from)
}

func (e *environment) report(name, what, remedy string) {
	e.problems = append(e.problems, Problem{Source: "environment", Key: name, What: what, Remedy: remedy})
}

func verbatim(s string) any { return s }

func milliseconds(s string) any {
	if _, err := strconv.ParseUint(s, 10, 32); err == nil {
		return s + "ms"
	}
	return s
}

// pairs parses "name=value,name=value" with percent-encoded values (W3C Baggage without properties).
func pairs(s string) any {
	table := map[string]any{}
	for pair := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		table[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return table
}
