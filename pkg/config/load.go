package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/disk"
)

// Source says where options come from.
type Source struct {
	// Base is what the file stands on: Default, or FromEnvironment.
	Base Options
	// Path is the file; empty where there is none.
	Path string
	// Optional says that a file that does not exist is the same as an empty one.
	Optional bool
	// Text is set on top of the file: what NRI's Configure handed over.
	Text string
	// Disk is what the files are on; nil is the system's.
	Disk disk.FS
}

// textName is what errors call the text of NRI's Configure.
const textName = "NRI configuration"

// Load reads the file and puts the text on top. The error is Problems where the
// options are wrong, and wraps the system's where the file cannot be read.
func (s Source) Load() (Options, error) {
	o := s.Base
	if s.Path != "" {
		data, err := readFile(disk.Or(s.Disk), s.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.Optional:
		case err != nil:
			return s.Base, fmt.Errorf("options: %w", err)
		default:
			if o, err = o.overlay(disk.Or(s.Disk), s.Path, data); err != nil {
				return s.Base, err
			}
		}
	}
	if s.Text == "" {
		return o, nil
	}
	o, err := o.overlay(disk.Or(s.Disk), textName, []byte(s.Text))
	if err != nil {
		return s.Base, err
	}
	return o, nil
}

// stillOptional reports whether the file may go on missing. One that was there may not vanish: an editor or a
// mount that is half done would switch everything back to the defaults.
func (s Source) stillOptional() bool {
	_, err := disk.Or(s.Disk).Stat(s.Path)
	return s.Optional && err != nil
}

// Load returns the options of a file on top of the defaults.
func Load(path string) (Options, error) {
	return Source{Base: Default(), Path: path}.Load()
}

// lookupTime bounds the lookup of names for a warning.
const lookupTime = 2 * time.Second

// Warnings returns which options are valid and still unwise, each with its place in the file.
// It looks up names, for lookupTime at most; ctx ends that.
func (s Source) Warnings(ctx context.Context, o Options) []Problem {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var at positions
	if data, err := readFile(disk.Or(s.Disk), s.Path); err == nil {
		at = locate(data)
	}
	var all Problems
	for key, f := range o.unwise(ctx) {
		all = append(all, f.at(s.Path, at, key))
	}
	return all.sorted()
}

// Parse returns the options of a text on top of the defaults. name is what errors call the text. The error is
// Problems: everything that is wrong, not only the first.
func Parse(name string, data []byte) (Options, error) {
	return Default().Overlay(name, data)
}

// Overlay returns o with what the text sets on top; what the text is silent about
// stays as it is in o. The error is Problems, and then the options are o.
func (o Options) Overlay(name string, data []byte) (Options, error) {
	return o.overlay(disk.System{}, name, data)
}

// overlay is Overlay, where the files that options name are on a disk.
func (o Options) overlay(on disk.FS, name string, data []byte) (Options, error) {
	if len(data) > maxFile {
		return o, Problems{{
			Source: name,
			What:   fmt.Sprintf("has %d bytes", len(data)),
			Remedy: fmt.Sprintf("shorten it to %s", binarySize(maxFile)),
		}}
	}
	// Some editors begin every file with a byte order mark; TOML has none.
	if len(data) >= 3 && string(data[:3]) == "\ufeff" {
		data = data[3:]
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		return o, Problems{syntax(name, data, err)}
	}
	next := o
	r := reader{name: name, at: locate(data), options: next.byKey(), known: allKeys()}
	r.table("", tree)
	for key, f := range crossed(on, next, r.at) {
		r.report(key, f)
	}
	if err := r.problems.err(); err != nil {
		return o, err
	}
	return next, nil
}

// reader puts a decoded tree into the options, and collects what does not fit.
type reader struct {
	name     string
	at       positions
	options  map[string]option
	known    []string
	problems Problems
}

func (r *reader) table(path string, tree map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		key, v := join(path, k), tree[k]
		sub, isTable := v.(map[string]any)
		opt, known := r.options[key]
		now, former := renamed[key]
		switch {
		case known:
			for _, f := range opt.set(v) {
				r.report(key, f)
			}
		case former:
			r.report(key, formerName(now))
		case !r.isSection(key):
			r.report(key, unknown(key, isTable, r.known))
		case !isTable:
			r.report(key, wrong("write ["+key+"] on a line of its own, its options below it", "is %s, but it is a section", typeName(v)))
		default:
			r.table(key, sub)
		}
	}
}

// isSection reports whether any option, former ones included, is in a section or in one below it.
func (r *reader) isSection(section string) bool {
	all := slices.Concat(r.known, slices.Collect(maps.Keys(renamed)))
	return slices.ContainsFunc(all, func(k string) bool { return strings.HasPrefix(k, section+".") })
}

// unknown describes a key that is neither an option nor a section: it suggests the known name
// that it is most likely a slip of, or lists those that could stand in its place.
func unknown(key string, isTable bool, known []string) *fault {
	section, _ := splitKey(key)
	var sections, inSection []string
	for _, k := range known {
		s, name := splitKey(k)
		sections = append(sections, s)
		if s == section {
			inSection = append(inSection, name)
		}
	}
	sections = slices.Compact(sections)
	others, what := "["+section+"] has "+strings.Join(inSection, ", "), "is not an option"
	if len(inSection) == 0 || isTable {
		others = "the sections are " + strings.Join(sections, ", ")
	}
	if isTable {
		what = "is not a section"
	}
	if advice, ok := foreign[key]; ok {
		return wrong(advice, "%s", what)
	}
	return wrong(suggest(key, append(sections, known...), others), "%s", what)
}

func (r *reader) report(key string, f *fault) {
	r.problems = append(r.problems, f.at(r.name, r.at, key))
}
