package config

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// FromEnvironment returns the defaults, changed by an environment ("NAME=value"): NODE_NAME, else hostname, and
// OpenTelemetry's variables. Load and Overlay judge the values that no text overrides.
func FromEnvironment(environ []string, hostname string) Options {
	o := Default()
	o.Resource.Node = hostname
	e := environment{variables: map[string]string{}, read: map[string]bool{}, into: &o}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		e.variables[name] = strings.TrimSpace(value)
	}
	e.set("resource.node", verbatim, "NODE_NAME")
	e.otel()
	return o
}

// judged holds the environment's mistakes until the texts are known.
type judged struct {
	wrong              map[string]Problems // by option
	warnings           Problems
	protocol, variable string // of OTLP
}

// differs warns of a protocol that the endpoint overrides.
func (j judged) differs(o OTLP) Problems {
	what := "has no effect: endpoint has a path, so it is for OTLP over HTTP"
	if o.Path() == "" {
		what = "has no effect: endpoint has no path, so it is for OTLP over gRPC"
	}
	if j.protocol == "" || o.Endpoint == "" || (j.protocol == "grpc") == (o.Path() == "") {
		return nil
	}
	return Problems{{Source: "environment", Key: j.variable, What: what, Remedy: "unset it, or change the endpoint"}}
}

// judge returns the Problems of the environment's values that count.
func (o Options) judge() (Options, error) {
	wrong := slices.Concat(slices.Collect(maps.Values(o.environment.wrong))...)
	o.environment = judged{}
	return o, wrong.err()
}

type environment struct {
	variables map[string]string
	read      map[string]bool
	into      *Options
}

// given returns the variables that are not empty.
func (e *environment) given(names ...string) (given []string) {
	for _, name := range names {
		e.read[name] = true
		if e.variables[name] != "" {
			given = append(given, name)
		}
	}
	return given
}

func (e *environment) first(names ...string) (value, name string) {
	if given := e.given(names...); len(given) > 0 {
		return e.variables[given[0]], given[0]
	}
	return "", ""
}

func (e *environment) set(key string, decode func(string) any, names ...string) {
	value, name := e.first(names...)
	if value != "" {
		e.assign(key, decode(value), name)
	}
}

func (e *environment) assign(key string, value any, variable string) {
	for _, f := range e.try(key, value) {
		e.report(key, variable+f.Key, f.What, f.Remedy)
	}
}

func (e *environment) try(key string, value any) []*Problem {
	all := e.into.system.settable()
	return all[slices.IndexFunc(all, func(opt option) bool { return opt.key == key })].set(e.into, value)
}

func (e *environment) report(key, variable, what, remedy string) {
	if e.into.environment.wrong == nil {
		e.into.environment.wrong = map[string]Problems{}
	}
	wrong := e.into.environment.wrong
	wrong[key] = append(wrong[key], Problem{Source: "environment", Key: variable, What: what, Remedy: remedy})
}

func (e *environment) warn(variable, what, remedy string) {
	warnings := &e.into.environment.warnings
	*warnings = append(*warnings, Problem{Source: "environment", Key: variable, What: what, Remedy: remedy})
}

func verbatim(s string) any { return s }

func milliseconds(s string) any {
	if _, err := strconv.ParseUint(s, 10, 32); err == nil {
		return s + "ms"
	}
	return s
}

// pairs parses percent-encoded "name=value,name=value" (W3C Baggage without properties).
func pairs(s string) any {
	table := map[string]any{}
	for pair := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, is := strings.Cut(pair, "=")
		if !is {
			name = "" // it may be a secret without its name
		}
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		table[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return table
}

// otel applies the OpenTelemetry specification's variables (configuration/sdk-environment-variables,
// protocol/exporter), and warns of unsupported ones.
func (e *environment) otel() {
	off, _ := e.first("OTEL_SDK_DISABLED")
	e.boolean("OTEL_SDK_DISABLED")
	if !e.exports() || strings.EqualFold(off, "true") {
		maps.DeleteFunc(e.variables, func(name, _ string) bool { return strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") })
	}
	e.endpoint()
	e.otlp("INSECURE", "insecure", func(s string) any { return strings.EqualFold(s, "true") })
	e.boolean("OTEL_EXPORTER_OTLP_TRACES_INSECURE", "OTEL_EXPORTER_OTLP_INSECURE")
	e.otlp("CERTIFICATE", "ca", verbatim)
	e.otlp("CLIENT_CERTIFICATE", "cert", verbatim)
	e.otlp("CLIENT_KEY", "key", verbatim)
	e.lenient("HEADERS", "headers", pairs)
	e.lenient("COMPRESSION", "compression", func(s string) any { return strings.ToLower(s) })
	e.lenient("TIMEOUT", "timeout", milliseconds)
	e.sampler()
	e.resource()
	for _, name := range slices.Sorted(maps.Keys(e.variables)) {
		value := e.variables[name]
		none := strings.EqualFold(value, "none") && (name == "OTEL_METRICS_EXPORTER" || name == "OTEL_LOGS_EXPORTER")
		if strings.HasPrefix(name, "OTEL_") && value != "" && !none && !e.read[name] {
			e.warn(name, "is not supported", "unset it")
		}
	}
}

// boolean warns of a value that the specification reads as false.
func (e *environment) boolean(names ...string) {
	value, name := e.first(names...)
	if value != "" && !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
		e.warn(name, quoted(value)+" counts as false", "set it to true or false")
	}
}

func (e *environment) exports() bool {
	const name = "OTEL_TRACES_EXPORTER"
	value, _ := e.first(name)
	wanted := false
	for word := range strings.SplitSeq(value, ",") {
		switch word = strings.TrimSpace(word); strings.ToLower(word) {
		case "", "otlp":
			wanted = true
		case "none":
		default:
			e.warn(name, quoted(word)+" is not supported", "set it to otlp or none")
		}
	}
	return wanted
}

// sampler sets the ratio; always_off also overrides keep.
func (e *environment) sampler() {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	sampler, _ := e.first(name)
	share, _ := e.first(argument)
	root, byParent := strings.CutPrefix(strings.ToLower(sampler), "parentbased_")
	switch root {
	case "":
		return
	case "always_on":
		e.assign("sampling.ratio", 1.0, name)
	case "always_off":
		e.assign("sampling.ratio", 0.0, name)
		e.assign("sampling.keep", []any{}, name)
	case "traceidratio":
		ratio, err := strconv.ParseFloat(share, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			ratio = 1
			if share != "" {
				e.warn(argument, quoted(share)+" is not a share", "set it to a number from 0 to 1")
			}
		}
		e.assign("sampling.ratio", ratio, argument)
	default:
		e.warn(name, quoted(sampler)+" is not supported",
			"set it to always_on, always_off or traceidratio, or to parentbased_ and one of these")
		return
	}
	e.assign("sampling.parent_based", byParent, name)
}

// resource sets attributes, except of Kubernetes and containers: here they describe cniscope's own pod.
func (e *environment) resource() {
	const name, service = "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"
	given, _ := e.first(name)
	table := pairs(given).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		_, faults := attributes().parse(map[string]any{key: table[key]})
		switch {
		case len(faults) > 0:
			e.warn(name+"."+key, faults[0].What, faults[0].Remedy)
		case strings.HasPrefix(key, "k8s.") || strings.HasPrefix(key, "container."):
			e.warn(name+"."+key, "has no effect: in a trace it describes the observed pod", "remove it")
		default:
			continue
		}
		delete(table, key)
	}
	if called, _ := e.first(service); called != "" {
		table["service.name"] = called
	}
	if len(table) > 0 {
		e.assign("resource.attributes", table, name)
	}
}

// otlp sets an option; the variable for traces has precedence.
func (e *environment) otlp(variable, key string, decode func(string) any) {
	e.set(otlp+key, decode, signals(variable)...)
}

func signals(variable string) []string {
	const prefix = "OTEL_EXPORTER_OTLP_"
	return []string{prefix + "TRACES_" + variable, prefix + variable}
}

// lenient warns of an invalid value and ignores it.
func (e *environment) lenient(variable, key string, decode func(string) any) {
	for _, name := range e.given(signals(variable)...) {
		faults := e.try(otlp+key, decode(e.variables[name]))
		for _, f := range faults {
			e.warn(name+f.Key, f.What, f.Remedy)
		}
		if len(faults) == 0 {
			return
		}
	}
}

func (e *environment) protocol() string {
	for _, name := range e.given(signals("PROTOCOL")...) {
		value := e.variables[name]
		switch known := strings.ToLower(value); known {
		case "grpc", "http/protobuf":
			e.into.environment.protocol, e.into.environment.variable = known, name
			return known
		default:
			e.warn(name, quoted(value)+" is not supported", "set it to grpc or http/protobuf")
		}
	}
	return ""
}

// HTTP appends the traces path to the endpoint of all signals.
func (e *environment) endpoint() {
	const name, endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", otlp + "endpoint"
	value, from := e.first(signals("ENDPOINT")...)
	protocol := e.protocol()
	if value == "" {
		return
	}
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		value = strings.ToLower(scheme) + "://" + strings.TrimSuffix(rest, "?")
	}
	switch path := (OTLP{Endpoint: value}).Path(); {
	case protocol == "" && strings.Trim(path, "/") != "":
		e.report(endpoint, from, "has a path: OTLP over gRPC has none",
			`set OTEL_EXPORTER_OTLP_PROTOCOL to "http/protobuf", or remove the path`)
		return
	case protocol != "http/protobuf":
		value = strings.TrimSuffix(value, path) // gRPC ignores the path
	case from == name:
		value = strings.TrimSuffix(value, "/") + "/v1/traces"
	case path == "", path == "/":
		value = strings.TrimSuffix(value, "/") + "/?" // which is no gRPC in a file, either
	}
	e.assign(endpoint, value, from)
}
