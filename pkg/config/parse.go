package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds the text of the options, in bytes: what NRI's Configure and a
// ConfigMap (1 MiB, Kubernetes documentation) hold at most.
const maxFile = 1 << 20

// Parse returns the options of a text on top of the defaults. name is what errors
// call the text. The error is Problems: everything that is wrong, not only the
// first.
func Parse(name string, data []byte) (Options, error) {
	return Default().Overlay(name, data)
}

// Overlay returns o with what the text sets on top; what the text is silent about
// stays as it is in o. The error is Problems, and then the options are o.
func (o Options) Overlay(name string, data []byte) (Options, error) {
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
		return o, Problems{syntax(name, err)}
	}
	next := o.clone()
	r := reader{name: name, at: locate(data), options: next.byKey(), known: keys()}
	r.table("", tree)
	for key, f := range crossed(next, r.at) {
		r.report(key, f)
	}
	if err := r.problems.err(); err != nil {
		return o, err
	}
	return next, nil
}

// syntax is what go-toml could not read. Of its error only the message is kept:
// the rest shows the lines around, and a secret may be among them.
func syntax(name string, err error) Problem {
	p := Problem{Source: name, What: "is not TOML", Remedy: "see https://toml.io, and configs/cniscope.toml for an example"}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		p.Line, p.Column = de.Position()
		p.What += " (" + strings.TrimPrefix(de.Error(), "toml: ") + ")"
	}
	return p
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
		if opt, ok := r.options[key]; ok {
			for _, f := range opt.set(v) {
				r.report(key, f)
			}
			continue
		}
		if !r.section(key) {
			r.report(key, wrong("take it out"+meant(key, append(r.sections(), r.known...)), "is not an option"))
			continue
		}
		sub, ok := v.(map[string]any)
		if !ok {
			r.report(key, wrong("write ["+key+"] on a line of its own, its options below it", "is %s, but it is a section", typeName(v)))
			continue
		}
		r.table(key, sub)
	}
}

// section reports whether there are options below key.
func (r *reader) section(key string) bool {
	return slices.ContainsFunc(r.known, func(k string) bool { return strings.HasPrefix(k, key+".") })
}

// sections are the names of every section.
func (r *reader) sections() []string {
	var all []string
	for _, k := range r.known {
		if dot := strings.LastIndexByte(k, '.'); dot > 0 {
			all = append(all, k[:dot])
		}
	}
	return slices.Compact(all)
}

func (r *reader) report(key string, f *fault) {
	p := r.at.of(key + f.under)
	r.problems = append(r.problems, Problem{
		Source: r.name, Line: p.line, Column: p.column,
		Key: key + f.under, What: f.what, Remedy: f.remedy,
	})
}
