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
