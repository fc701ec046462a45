package config

import (
	"reflect"
	"time"
)

// option is one option of the file: its name, and the field it is kept in.
type option struct {
	// key is the option's full name, as "export.otlp.endpoint".
	key string
	// live is true where a change takes effect while cniscope runs.
	live bool
	field
}

// field is a field of Options together with its kind.
type field interface {
	// set takes what TOML decoded, or says what is wrong with it.
	set(v any) []*fault
	// take copies the value of the same field of other Options.
	take(from field)
	// same reports whether both hold the same value.
	same(as field) bool
	// toml is the value as TOML, secrets redacted.
	toml() string
}

type fieldOf[T any] struct {
	at   *T
	kind kind[T]
}

func (f fieldOf[T]) set(v any) []*fault {
	t, faults := f.kind.parse(v)
	if len(faults) == 0 {
		*f.at = t
	}
	return faults
}

func (f fieldOf[T]) take(from field) { *f.at = *from.(fieldOf[T]).at }

func (f fieldOf[T]) same(as field) bool { return reflect.DeepEqual(*f.at, *as.(fieldOf[T]).at) }

func (f fieldOf[T]) toml() string { return f.kind.toml(*f.at) }

// is binds a kind to the field that holds it.
func is[T any](at *T, k kind[T]) field { return fieldOf[T]{at, k} }

// schema lists every option, section by section, bound to the fields of o. It is
// the one place that knows them all: reading, checking, comparing and writing go
// through it.
func (o *Options) schema() []option {
	const live, restart = true, false
	return []option{
		{"sampling.ratio", live, is(&o.Sampling.Ratio, share())},
		{"sampling.rule", live, is(&o.Sampling.Rules, namespaceRules())},
		{"sampling.annotation_namespaces", live, is(&o.Sampling.AnnotationNamespaces, listOf(pattern("team-*"), 64))},
		{"sampling.per_second", live, is(&o.Sampling.PerSecond, count(0, 10_000))},
		{"sampling.keep", live, is(&o.Sampling.Keep, someOf("slow", "failed", "hung", "partial"))},

		{"slow.command", live, is(&o.Slow.Command, span(shortest, longest))},
		{"slow.call", live, is(&o.Slow.Call, span(shortest, longest))},
		{"slow.agent", live, is(&o.Slow.Agent, span(shortest, longest))},
		{"slow.lock", live, is(&o.Slow.Lock, span(shortest, longest))},
		{"slow.hung", restart, is(&o.Slow.Hung, span(shortest, longest))},
		{"slow.rule", live, is(&o.Slow.Rules, rules())},

		{"export.queue", restart, is(&o.Export.Queue, count(1, 1<<16))},

		{"export.otlp.endpoint", live, is(&o.Export.OTLP.Endpoint, endpoint())},
		{"export.otlp.insecure", live, is(&o.Export.OTLP.Insecure, yesNo())},
		{"export.otlp.ca", live, is(&o.Export.OTLP.CA, place(true))},
		{"export.otlp.cert", live, is(&o.Export.OTLP.Cert, place(true))},
		{"export.otlp.key", live, is(&o.Export.OTLP.Key, place(true))},
		{"export.otlp.headers", live, is(&o.Export.OTLP.Headers, headers())},
		{"export.otlp.compression", live, is(&o.Export.OTLP.Compression, oneOf("gzip", "none"))},
		{"export.otlp.timeout", live, is(&o.Export.OTLP.Timeout, span(100*time.Millisecond, 10*time.Minute))},

		{"export.file.path", live, is(&o.Export.File.Path, place(true))},
		{"export.file.max_bytes", live, is(&o.Export.File.MaxBytes, size(1<<20, 1<<40, false))},

		{"export.spool.dir", restart, is(&o.Export.Spool.Dir, place(true))},
		{"export.spool.max_bytes", restart, is(&o.Export.Spool.MaxBytes, size(16<<20, 1<<40, false))},
		{"export.spool.max_age", restart, is(&o.Export.Spool.MaxAge, span(time.Minute, 365*24*time.Hour))},

		{"relay.listen", restart, is(&o.Relay.Listen, loopback())},
		{"relay.upstream", live, is(&o.Relay.Upstream, endpoint())},
		{"relay.wait", restart, is(&o.Relay.Wait, span(100*time.Millisecond, time.Minute))},
		{"relay.queue", restart, is(&o.Relay.Queue, size(1<<20, 1<<30, false))},

		{"resource.node", restart, is(&o.Resource.Node, words(nil))},
		{"resource.cluster", restart, is(&o.Resource.Cluster, words(nil))},
		{"resource.attributes", restart, is(&o.Resource.Attributes, attributes())},

		{"metrics.listen", restart, is(&o.Metrics.Listen, listen())},

		{"nri.enabled", restart, is(&o.NRI.Enabled, yesNo())},
		{"nri.socket", restart, is(&o.NRI.Socket, place(false))},

		{"runtime.socket", restart, is(&o.Runtime.Socket, place(false))},

		{"cni.conf_dir", restart, is(&o.CNI.ConfDir, place(false))},

		{"probe.ring", restart, is(&o.Probe.Ring, size(64<<10, 64<<20, true))},
		{"probe.arguments", restart, is(&o.Probe.Arguments, oneOf(ArgumentsKnown, ArgumentsNone, ArgumentsAll))},
		{"probe.detail", restart, is(&o.Probe.Detail, oneOf(DetailAuto, DetailAlways, DetailCommands))},
		{"probe.linger", restart, is(&o.Probe.Linger, span(time.Second, longest))},
		{"probe.agents", restart, is(&o.Probe.Agents, listOf(pattern("antrea-agent"), 100))},
		{"probe.agent_depth", restart, is(&o.Probe.AgentDepth, count(0, 2))},
		{"probe.callers", restart, is(&o.Probe.Callers, listOf(program("/usr/bin/cri-dockerd"), 16))},
		{"probe.rootless", restart, is(&o.Probe.Rootless, yesNo())},

		{"limits.settle", restart, is(&o.Limits.Settle, span(10*time.Millisecond, time.Minute))},
		{"limits.max_hold", restart, is(&o.Limits.MaxHold, span(time.Second, longest))},
		{"limits.processes", restart, is(&o.Limits.Processes, count(256, 1<<17))},
		{"limits.operations", restart, is(&o.Limits.Operations, count(16, 1<<16))},
		{"limits.min_span", restart, is(&o.Limits.MinSpan, span(100*time.Microsecond, time.Second))},
		{"limits.images", restart, is(&o.Limits.Images, count(16, 5000))},
		{"limits.facts", restart, is(&o.Limits.Facts, count(16, 5000))},

		{"log.level", live, is(&o.Log.Level, oneOf("debug", "info", "warn", "error"))},
		{"log.format", restart, is(&o.Log.Format, oneOf("text", "json"))},

		{"state.dir", restart, is(&o.State.Dir, place(false))},
	}
}

// byKey is the schema by the options' names.
func (o *Options) byKey() map[string]option {
	all := map[string]option{}
	for _, opt := range o.schema() {
		all[opt.key] = opt
	}
	return all
}

// keys are the names of every option.
func keys() []string {
	var all []string
	for _, opt := range new(Options).schema() {
		all = append(all, opt.key)
	}
	return all
}
