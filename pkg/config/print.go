package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/text"
)

// Change is one changed option.
type Change struct {
	Key string `json:"key"`
	// Old and New are for display, equal if only a secret changed.
	Old  string `json:"default"`
	New  string `json:"value"`
	Live bool   `json:"-"`
}

// String returns "slow.command: 250ms -> 100ms", with a note if a restart is needed.
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

// Differs returns "slow.command: 100ms (default 250ms)".
func (c Change) Differs() string {
	if c.Old == c.New {
		return c.String()
	}
	return fmt.Sprintf("%s: %s (default %s)", c.Key, c.New, c.Old)
}

// Changes returns the options that differ from old, in the file's order.
func (o Options) Changes(old Options) []Change {
	var changes []Change
	for _, opt := range o.system.settable() {
		if was, is := opt.of(&old).Interface(), opt.of(&o).Interface(); !reflect.DeepEqual(was, is) {
			changes = append(changes, Change{opt.key, unquoted(opt.toml(was)), unquoted(opt.toml(is)), opt.live})
		}
	}
	return changes
}

// All returns every option with its default.
func (o Options) All() (all []Change) {
	for _, opt := range o.system.settable() {
		all = append(all, Change{opt.key, unquoted(opt.written()), unquoted(opt.toml(opt.of(&o).Interface())), opt.live})
	}
	return all
}

func unquoted(s string) string {
	if inner := strings.Trim(s, `"`); len(inner) == len(s)-2 && inner != "" && !strings.Contains(inner, `\`) {
		return inner
	}
	return s
}

// running returns next's live options and o's others.
func (o Options) running(next Options) Options {
	for _, opt := range o.system.options() {
		if opt.live {
			opt.of(&o).Set(opt.of(&next))
		}
	}
	return o
}

// TOML returns a file that Parse accepts, with secrets redacted and each changed option's default as a comment.
func (o Options) TOML() string {
	var b strings.Builder
	section := ""
	for _, opt := range o.system.settable() {
		in, name := splitKey(opt.key)
		if in != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = in
			b.WriteString("[" + in + "]\n")
		}
		is := opt.toml(opt.of(&o).Interface())
		b.WriteString(name + " = " + is)
		if standard := opt.written(); is != standard {
			b.WriteString("  # default: " + standard)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (opt option) written() string { return opt.toml(opt.usual) }

// Recorded returns the options for a recording's header, by section and key.
func (o Options) Recorded() map[string]any {
	if o.Relay.Listen == "" {
		o.Relay.Wait = 0 // no spans arrive
	}
	all := map[string]any{}
	for _, opt := range o.system.options() {
		if opt.record == "" {
			continue
		}
		section, name := splitKey(opt.record)
		in := all
		if section != "" {
			if all[section] == nil {
				all[section] = map[string]any{}
			}
			in = all[section].(map[string]any)
		}
		in[name] = opt.of(&o).Interface()
	}
	return all
}

// FromRecording returns a recording's options. Missing or invalid values become defaults, described in said, so a
// recording's author cannot choose the cost of reading it.
func FromRecording(header []byte) (o Options, said []string, err error) {
	o = Default()
	o.Relay.Wait = 0
	for _, opt := range o.system.options() {
		if opt.record == "" {
			continue
		}
		raw, err := member(header, strings.Split(opt.record, "."))
		if err == nil && len(raw) > 0 {
			err = json.Unmarshal(raw, opt.of(&o).Addr().Interface())
		}
		if err != nil {
			return o, nil, fmt.Errorf("%s: %w", opt.record, err)
		}
	}
	// Version 1 had one bound for images and facts.
	var old struct{ Timeline struct{ Spans int } }
	if spans := &old.Timeline.Spans; json.Unmarshal(header, &old) == nil && *spans != 0 {
		o.Limits.Images, o.Limits.Facts = *spans, *spans/2
	}
	relayed := o.Relay.Wait != 0
	if !relayed {
		o.Relay.Wait = Default().Relay.Wait
	}
	said = o.repair()
	if relayed {
		o.Relay.Listen = "127.0.0.1:4319" // any address
	}
	return o, said, nil
}

func member(object json.RawMessage, path []string) (json.RawMessage, error) {
	for _, name := range path {
		var members map[string]json.RawMessage
		if len(object) == 0 {
			return nil, nil
		}
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
		object = members[name]
	}
	return object, nil
}

// repair resets options that no file could set, and describes the change.
func (o *Options) repair() (said []string) {
	for _, opt := range o.system.options() {
		field := opt.of(o)
		if reflect.DeepEqual(field.Interface(), opt.usual) {
			continue
		}
		is := opt.toml(field.Interface())
		var decoded map[string]any
		if toml.Unmarshal([]byte("is = "+is), &decoded) == nil {
			if _, faults := opt.parse(decoded["is"]); len(faults) == 0 {
				continue
			}
		}
		field.Set(reflect.ValueOf(opt.usual))
		const what = "%s = %s cannot be; the default %s is taken"
		said = append(said, fmt.Sprintf(what, opt.key, text.Clean(is, 64), opt.written()))
	}
	return said
}

// Entry describes one option for generated files.
type Entry struct {
	Key     string   // "slow.call"
	Fields  []string // path in Options: "Slow", "Call"
	Default string   // on Linux, as TOML
	// Possible is in words, Schema in JSON Schema.
	Possible, Schema string
	// Live needs no restart; Chart is settable in the chart.
	Live, Chart bool
	// Fixed is the version since which the option has no effect.
	Fixed string
}

// Entries returns all options, in the file's order.
func Entries() (all []Entry) {
	for _, opt := range Linux.options() {
		e := Entry{
			Key: opt.key, Default: opt.written(), Possible: opt.possible, Schema: opt.schema,
			Live: opt.live, Chart: opt.chart, Fixed: opt.fixed(),
		}
		in := reflect.TypeFor[Options]()
		for _, i := range opt.index {
			e.Fields = append(e.Fields, in.Field(i).Name)
			in = in.Field(i).Type
		}
		all = append(all, e)
	}
	return all
}
