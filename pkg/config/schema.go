package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/text"
)

type option struct {
	key  string // full name, as "export.otlp.endpoint"
	live bool   // takes effect while cniscope runs
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

// bind ties a kind to the field that holds its value.
func bind[T any](at *T, k kind[T]) field { return fieldOf[T]{at, k} }

// schema lists every option, section by section, bound to the fields of o. It is the one place that knows
// them all: reading, checking, comparing and writing go through it.
func (o *Options) schema() []option {
	const live, restart = true, false
	on := o.system
	return []option{
		{"sampling.ratio", live, bind(&o.Sampling.Ratio, ratio())},
		{"sampling.rule", live, bind(&o.Sampling.Rules, namespaceRules())},
		{"sampling.annotation_namespaces", live, bind(&o.Sampling.AnnotationNamespaces, patterns(pattern("team-*"), 64))},
		{"sampling.per_second", live, bind(&o.Sampling.PerSecond, count(0, 10_000))},
		{"sampling.keep", live, bind(&o.Sampling.Keep, someOf("slow", "failed", "hung", "partial", "unusual"))},

		{"slow.command", live, bind(&o.Slow.Command, duration(shortest, longest))},
		{"slow.call", live, bind(&o.Slow.Call, duration(shortest, longest))},
		{"slow.agent", live, bind(&o.Slow.Agent, duration(shortest, longest))},
		{"slow.lock", live, bind(&o.Slow.Lock, duration(shortest, longest))},
		{"slow.hung", restart, bind(&o.Slow.Hung, duration(shortest, longest))},
		{"slow.readiness", restart, bind(&o.Slow.Readiness, duration(time.Second, longest))},
		{"slow.first_connection", restart, bind(&o.Slow.FirstConnection, duration(time.Millisecond, time.Minute))},
		{"slow.baseline", live, bind(&o.Slow.Baseline, boolean())},
		{"slow.floor", live, bind(&o.Slow.Floor, duration(shortest, longest))},
		{"slow.baseline_dir", restart, bind(&o.Slow.BaselineDir, absolute(on, true))},
		{"slow.rule", live, bind(&o.Slow.Rules, slowRules())},

		{"trace.fold_commands", live, bind(&o.Trace.FoldCommands, boolean())},
		{"trace.labels", restart, bind(&o.Trace.Labels, patterns(pattern("app.kubernetes.io/*"), 64))},

		{"export.queue", restart, bind(&o.Export.Queue, count(1, 1<<16))},

		{"export.otlp.endpoint", live, bind(&o.Export.OTLP.Endpoint, endpoint())},
		{"export.otlp.insecure", live, bind(&o.Export.OTLP.Insecure, boolean())},
		{"export.otlp.ca", live, bind(&o.Export.OTLP.CA, absolute(on, true))},
		{"export.otlp.cert", live, bind(&o.Export.OTLP.Cert, absolute(on, true))},
		{"export.otlp.key", live, bind(&o.Export.OTLP.Key, absolute(on, true))},
		{"export.otlp.headers", live, bind(&o.Export.OTLP.Headers, headers())},
		{"export.otlp.compression", live, bind(&o.Export.OTLP.Compression, oneOf("gzip", "none"))},
		{"export.otlp.timeout", live, bind(&o.Export.OTLP.Timeout, duration(100*time.Millisecond, 10*time.Minute))},

		{"export.file.path", live, bind(&o.Export.File.Path, absolute(on, true))},
		{"export.file.max_bytes", live, bind(&o.Export.File.MaxBytes, size(1<<20, 1<<40, false))},

		{"export.spool.dir", restart, bind(&o.Export.Spool.Dir, absolute(on, true))},
		{"export.spool.max_bytes", restart, bind(&o.Export.Spool.MaxBytes, size(16<<20, 1<<40, false))},
		{"export.spool.max_age", restart, bind(&o.Export.Spool.MaxAge, duration(time.Minute, 365*24*time.Hour))},

		{"relay.listen", restart, bind(&o.Relay.Listen, loopback())},
		{"relay.upstream", live, bind(&o.Relay.Upstream, endpoint())},
		{"relay.wait", restart, bind(&o.Relay.Wait, duration(100*time.Millisecond, time.Minute))},
		{"relay.queue", restart, bind(&o.Relay.Queue, size(1<<20, 1<<30, false))},

		{"resource.node", restart, bind(&o.Resource.Node, str(anyText))},
		{"resource.cluster", restart, bind(&o.Resource.Cluster, str(anyText))},
		{"resource.attributes", restart, bind(&o.Resource.Attributes, attributes())},

		{"metrics.listen", restart, bind(&o.Metrics.Listen, listen())},
		{"metrics.web_config", restart, bind(&o.Metrics.WebConfig, absolute(on, true))},
		{"metrics.health_listen", restart, bind(&o.Metrics.HealthListen, listen())},

		{"nri.enabled", restart, bind(&o.NRI.Enabled, boolean())},
		{"nri.socket", restart, bind(&o.NRI.Socket, socket(on, on == Windows))},

		{"runtime.socket", restart, bind(&o.Runtime.Socket, socket(on, false))},

		{"cni.conf_dir", restart, bind(&o.CNI.ConfDir, absolute(on, false))},

		{"probe.source", restart, bind(&o.Probe.Source, oneOf(on.sources()...))},
		{"probe.ring", restart, bind(&o.Probe.Ring, size(64<<10, 64<<20, true))},
		{"probe.arguments", restart, bind(&o.Probe.Arguments, oneOf(ArgumentsKnown, ArgumentsNone, ArgumentsAll))},
		{"probe.detail", restart, bind(&o.Probe.Detail, oneOf(DetailAuto, DetailAlways, DetailCommands))},
		{"probe.linger", restart, bind(&o.Probe.Linger, duration(time.Second, longest))},
		{"probe.agents", restart, bind(&o.Probe.Agents, patterns(pattern("antrea-agent"), 100))},
		{"probe.agent_depth", restart, bind(&o.Probe.AgentDepth, count(0, 2))},
		{"probe.callers", restart, bind(&o.Probe.Callers, patterns(program(on), 16))},
		{"probe.rootless", restart, bind(&o.Probe.Rootless, boolean())},

		{"limits.settle", restart, bind(&o.Limits.Settle, duration(10*time.Millisecond, time.Minute))},
		{"limits.max_hold", restart, bind(&o.Limits.MaxHold, duration(time.Second, longest))},
		{"limits.processes", restart, bind(&o.Limits.Processes, count(256, 1<<17))},
		{"limits.operations", restart, bind(&o.Limits.Operations, count(16, 1<<16))},
		{"limits.min_span", restart, bind(&o.Limits.MinSpan, duration(100*time.Microsecond, time.Second))},
		{"limits.images", restart, bind(&o.Limits.Images, count(16, 5000))},
		{"limits.facts", restart, bind(&o.Limits.Facts, count(16, 5000))},

		{"leaks.after", restart, bind(&o.Leaks.After, duration(time.Second, longest))},

		{"log.level", live, bind(&o.Log.Level, oneOf("debug", "info", "warn", "error"))},
		{"log.format", restart, bind(&o.Log.Format, oneOf("text", "json"))},

		{"state.dir", restart, bind(&o.State.Dir, absolute(on, false))},

		{"control.read_group", restart, bind(&o.Control.ReadGroup, group())},
		{"control.read_dir", restart, bind(&o.Control.ReadDir, absolute(on, true))},
	}
}

func (o *Options) byKey() map[string]option {
	all := map[string]option{}
	for _, opt := range o.schema() {
		all[opt.key] = opt
	}
	return all
}

func allKeys() []string {
	var all []string
	for _, opt := range new(Options).schema() {
		all = append(all, opt.key)
	}
	return all
}

// Change is one option that is not what it was.
type Change struct {
	Key string
	// Old and New are the values as people write them. They are the same where only a secret changed.
	Old, New string
	Live     bool // takes effect while cniscope runs, without a restart
}

// String returns "slow.command: 250ms -> 100ms", and says so where that needs a restart.
func (c Change) String() string {
	s := c.Key + ": " + c.Old + " -> " + c.New
	if c.Old == c.New {
		s = c.Key + ": changed (values are not shown)"
	}
	if !c.Live {
		s += " (needs a restart)"
	}
	return s
}

// Changes returns how o differs from old, in the order of the file.
func (o Options) Changes(old Options) []Change {
	var changes []Change
	before := old.schema()
	for i, opt := range o.schema() {
		if opt.same(before[i].field) {
			continue
		}
		changes = append(changes, Change{opt.key, unquoted(before[i].toml()), unquoted(opt.toml()), opt.live})
	}
	return changes
}

func unquoted(s string) string {
	if inner := strings.Trim(s, `"`); len(inner) == len(s)-2 && inner != "" && !strings.Contains(inner, `\`) {
		return inner
	}
	return s
}

// running returns what is in force after next was loaded while o was: the live
// options of next, the others of o.
func (o Options) running(next Options) Options {
	now := o
	to := now.schema()
	for i, from := range next.schema() {
		if from.live {
			to[i].take(from.field)
		}
	}
	return now
}

// TOML returns all options as a file that Parse reads; secrets are redacted, and
// what is not the default says in a comment what the default is.
func (o Options) TOML() string {
	var b strings.Builder
	defaults := DefaultFor(o.system)
	standard := defaults.schema()
	section := ""
	for i, opt := range o.schema() {
		dot := strings.LastIndexByte(opt.key, '.')
		if s := opt.key[:max(0, dot)]; s != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = s
			b.WriteString("[" + s + "]\n")
		}
		b.WriteString(opt.key[dot+1:] + " = " + opt.toml())
		if !opt.same(standard[i].field) {
			b.WriteString("  # default: " + standard[i].toml())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Repair replaces by its default each option of o that no options file could hold, and describes
// what it replaced. It is for options from elsewhere, as those in a recording.
func (o *Options) Repair() (said []string) {
	usual := DefaultFor(o.system)
	defaults := usual.schema()
	for i, opt := range o.schema() {
		if opt.same(defaults[i].field) {
			continue
		}
		is := opt.toml()
		var decoded map[string]any
		if toml.Unmarshal([]byte("is = "+is), &decoded) == nil && len(opt.set(decoded["is"])) == 0 {
			continue
		}
		opt.take(defaults[i].field)
		said = append(said, fmt.Sprintf("%s = %s cannot be; the default %s is taken", opt.key, text.Clean(is, 64), opt.toml()))
	}
	return said
}
