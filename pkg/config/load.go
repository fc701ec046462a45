package config

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/disk"
)

// Source is where options come from.
type Source struct {
	// Base is Default or FromEnvironment.
	Base Options
	// Path may be empty.
	Path string
	// Optional accepts a missing file.
	Optional bool
	// Text is what NRI's Configure passed, or TextName; it overrides the file.
	Text, TextName string
	// Disk defaults to the system's file system.
	Disk disk.FS
}

const textName = "NRI configuration"

// Load reads the file and the text. The error is Problems, or wraps the system's if the file cannot be read.
func (s Source) Load() (Options, error) {
	o := s.Base
	if s.Path != "" {
		data, err := disk.ReadRegular(disk.Or(s.Disk), s.Path, maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.Optional:
		case err != nil:
			return s.Base, fmt.Errorf("cannot read the configuration file: %w", err)
		default:
			if o, _, err = o.overlay(disk.Or(s.Disk), s.Path, data); err != nil {
				return s.Base, err
			}
		}
	}
	var err error
	if s.Text != "" {
		o, _, err = o.overlay(disk.Or(s.Disk), cmp.Or(s.TextName, textName), []byte(s.Text))
	}
	if err == nil {
		o, err = o.judge()
	}
	if err != nil {
		return s.Base, err
	}
	return o, nil
}

// stillOptional requires a file that existed, because a half-finished edit or mount would reset all options.
func (s Source) stillOptional() bool {
	_, err := disk.Or(s.Disk).Stat(s.Path)
	return s.Optional && err != nil
}

const lookupTime = 2 * time.Second

// Warnings returns unwise options and former names. It resolves names within lookupTime.
func (s Source) Warnings(ctx context.Context, o Options) []Problem {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	on := disk.Or(s.Disk)
	data, _ := disk.ReadRegular(on, s.Path, maxFile) // an unreadable file has no positions
	_, all, _ := s.Base.overlay(on, s.Path, data)
	_, ofText, _ := s.Base.overlay(on, textName, []byte(s.Text))
	at, _ := locate(data)
	for key, f := range o.unwise(ctx) {
		all = append(all, f.at(s.Path, at, key))
	}
	said := s.Base.environment
	return slices.Concat(said.warnings, said.differs(o.Export.OTLP), append(all, ofText...).sorted())
}

// Parse returns the options of a text, with defaults; errors contain name. The error is Problems.
func Parse(name string, data []byte) (Options, error) {
	return Source{Base: Default(), Text: string(data), TextName: name}.Load()
}

// overlay also returns a warning for each former name.
func (o Options) overlay(on disk.FS, name string, data []byte) (Options, Problems, error) {
	if len(data) > maxFile {
		return o, nil, Problems{{
			Source: name,
			What:   fmt.Sprintf("has %d bytes", len(data)),
			Remedy: fmt.Sprintf("shorten it to %s", binarySize(maxFile)),
		}}
	}
	// Some editors write a byte order mark, which TOML forbids.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	at, few := locate(data)
	if !few {
		return o, nil, Problems{{
			Source: name,
			What:   fmt.Sprintf("has more than %d keys and items of lists", maxEntries),
			Remedy: "remove what cniscope does not need",
		}}
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		return o, nil, Problems{syntax(name, data, err)}
	}
	next := o
	next.environment.wrong = maps.Clone(o.environment.wrong)
	r := reader{name: name, at: at, into: &next, options: map[string]option{}, former: o.system.former()}
	for _, opt := range o.system.settable() {
		r.options[opt.key] = opt
		r.known = append(r.known, opt.key)
	}
	r.table("", tree)
	for key, f := range crossed(on, next, r.at) {
		r.report(key, f)
	}
	if err := r.problems.err(); err != nil {
		return o, r.warnings, err
	}
	return next, r.warnings, nil
}

type reader struct {
	name     string
	at       positions
	into     *Options
	options  map[string]option
	known    []string // sorted
	former   map[string]former
	problems Problems
	warnings Problems
}

func (r *reader) table(path string, tree map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		key, v := join(path, k), tree[k]
		sub, isTable := v.(map[string]any)
		opt, known := r.options[key]
		was, isFormer := r.former[key]
		switch {
		case known:
			delete(r.into.environment.wrong, key)
			r.report(key, opt.set(r.into, v)...)
		case isFormer:
			r.warnings = append(r.warnings, was.warning.at(r.name, r.at, key))
			if _, both := r.at[was.now]; was.same && !both {
				r.report(key, r.options[was.now].set(r.into, v)...)
			}
		case !r.isSection(key):
			r.report(key, unknown(key, isTable, r.known))
		case !isTable:
			remedy := "write [" + key + "] on a line of its own, its options below it"
			r.report(key, wrong(remedy, "is %s, but it is a section", typeName(v)))
		default:
			r.table(key, sub)
		}
	}
}

// isSection also knows former names.
func (r *reader) isSection(section string) bool {
	all := slices.Concat(r.known, slices.Collect(maps.Keys(r.former)))
	return slices.ContainsFunc(all, func(k string) bool { return strings.HasPrefix(k, section+".") })
}

func (r *reader) report(key string, faults ...*Problem) {
	for _, f := range faults {
		r.problems = append(r.problems, f.at(r.name, r.at, key))
	}
}

type option struct {
	spec
	value
	index  []int // of the field in Options
	live   bool
	record string // key in a recording's header
	chart  bool   // settable in the chart
	usual  any    // default
}

func (opt option) of(o *Options) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByIndex(opt.index)
}

func (opt option) set(o *Options, decoded any) []*Problem {
	v, faults := opt.parse(decoded)
	if len(faults) == 0 {
		opt.of(o).Set(reflect.ValueOf(v))
	}
	return faults
}

func (opt option) fixed() string { return opt.tag.Get("fixed") }

func (s System) options() []option {
	root := option{spec: spec{system: s}, chart: true}
	return root.below(reflect.TypeFor[Options]())
}

func (s System) settable() []option {
	return slices.DeleteFunc(s.options(), func(opt option) bool { return opt.fixed() != "" })
}

func (opt option) below(section reflect.Type) (all []option) {
	for i := range section.NumField() {
		f := section.Field(i)
		if !f.IsExported() {
			continue
		}
		next := opt
		next.tag, next.index = f.Tag, append(slices.Clone(opt.index), i)
		next.key = strings.TrimPrefix(opt.key+"."+f.Tag.Get("key"), ".")
		if reload, ok := f.Tag.Lookup("reload"); ok {
			next.live = reload == "live"
		}
		next.record = f.Tag.Get("record")
		next.chart = opt.chart && f.Tag.Get("chart") != "-"
		if f.Type.Kind() == reflect.Struct {
			all = append(all, next.below(f.Type)...)
			continue
		}
		if next.record != "" && opt.record != "" && !strings.Contains(next.record, ".") {
			next.record = opt.record + "." + next.record
		}
		next.check = f.Tag.Get("is")
		next.defaultValue = next.system.defaultOf(next.key, f.Tag.Get("default"))
		next.words = next.system.wordsOf(next.key, f.Tag.Get("oneof"))
		next.value = valueOf(f.Type, next.spec)
		next.usual = reflect.Zero(f.Type).Interface()
		if next.defaultValue != "" {
			var faults []*Problem
			if next.usual, faults = next.parse(decoded(next.defaultValue, f.Type.Kind())); len(faults) > 0 {
				panic(next.key + ": its default " + faults[0].What)
			}
		}
		all = append(all, next)
	}
	return all
}

// Default returns the default options of this system.
func Default() Options { return DefaultFor(Here()) }

// DefaultFor returns a system's default options.
func DefaultFor(on System) Options {
	o := Options{system: on}
	for _, opt := range on.options() {
		opt.of(&o).Set(reflect.ValueOf(opt.usual))
	}
	return o
}

func decoded(text string, kind reflect.Kind) any {
	switch kind {
	case reflect.Bool:
		return text == "true"
	case reflect.Int, reflect.Float64:
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	case reflect.Slice:
		var items []any
		for _, word := range strings.Fields(text) {
			items = append(items, word)
		}
		return items
	}
	return text
}

// former is a former option name, accepted with a warning for two minor versions.
type former struct {
	since   string // first version without the name
	now     string
	same    bool // the present option accepts its value
	warning *Problem
}

func (s System) former() map[string]former {
	all := map[string]former{}
	for _, opt := range s.options() {
		if since := opt.fixed(); since != "" {
			warning := wrong("remove it", "has no effect any more: it is always %s", unquoted(opt.written()))
			all[opt.key] = former{since: since, warning: warning}
		}
		if was := strings.Fields(opt.tag.Get("was")); len(was) > 1 {
			section, key := splitKey(opt.key)
			f := former{since: was[1], now: opt.key, same: len(was) == 2}
			f.warning = wrong("write "+key+" = … in ["+section+"]", "is now called %s", opt.key)
			if !f.same {
				f.warning.What += " and written otherwise: it has no effect"
			}
			all[was[0]] = f
		}
	}
	return all
}
