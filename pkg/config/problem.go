package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/cniscope/cniscope/pkg/text"
)

// Problem is one mistake, with a remedy. The caller of a check adds the position.
type Problem struct {
	Source string `json:"source,omitempty"` // file, "NRI configuration" or "environment"
	Line   int    `json:"line,omitempty"`   // from 1
	Column int    `json:"column,omitempty"`
	Key    string `json:"key,omitempty"`    // option, or the path below the checked value: "[1]", ".x-token"
	What   string `json:"what"`             // contains no secret
	Remedy string `json:"remedy,omitempty"` // imperative
}

// Error returns "file:line:column: key: what; remedy".
func (p Problem) Error() string {
	at := p.Source
	if p.Line > 0 {
		at += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	var parts []string
	for _, part := range []string{at, text.Clean(p.Key, text.Bound), p.What} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if p.Remedy != "" {
		parts[len(parts)-1] += "; " + p.Remedy
	}
	return strings.Join(parts, ": ")
}

// Problems holds all mistakes in the order of the text.
type Problems []Problem

// problemsShown bounds an error: an unrelated file has a mistake on each line.
const problemsShown = 20

// Error returns one line per problem.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps[:min(len(ps), problemsShown)] {
		lines = append(lines, p.Error())
	}
	if more := len(ps) - problemsShown; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", ps[0].Source, more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems, for errors.As.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.sorted()
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Key, b.Key))
	})
	return ps
}

func wrong(remedy, what string, args ...any) *Problem {
	return &Problem{What: fmt.Sprintf(what, args...), Remedy: remedy}
}

func below(path string, faults []*Problem) []*Problem {
	for _, f := range faults {
		f.Key = path + f.Key
	}
	return faults
}

func (p Problem) at(source string, where positions, key string) Problem {
	at := where.of(key + p.Key)
	return Problem{Source: source, Line: at.line, Column: at.column, Key: key + p.Key, What: p.What, Remedy: p.Remedy}
}

// position counts from 1; zero if unknown.
type position struct{ line, column int }

// positions has keys such as "slow.command", "slow.rule[0].threshold", "sampling.keep[1]".
type positions map[string]position

const (
	// maxEntries bounds keys and items of lists, because go-toml compares each key with all before it.
	maxEntries = 4096
	// maxPath bounds the bytes of a path that tell its position.
	maxPath = 256
)

func cut(path string) string { return path[:min(len(path), maxPath)] }

// locate also returns whether the text has at most maxEntries.
func locate(data []byte) (positions, bool) {
	l := locator{lines: lines(data), found: positions{}, length: map[string]int{}}
	l.parser.Reset(data)
	table := ""
	for l.entries <= maxEntries && l.parser.NextExpression() {
		switch e := l.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = l.keys(e, "", e.Kind == unstable.ArrayTable)
		case unstable.KeyValue:
			l.keyValue(e, table)
		}
	}
	return l.found, l.entries <= maxEntries
}

type locator struct {
	parser  unstable.Parser
	lines   []int
	found   positions
	length  map[string]int // items of each [[list]] so far
	entries int
}

func (l *locator) keyValue(e *unstable.Node, table string) {
	l.value(e.Value(), l.keys(e, table, false))
}

func (l *locator) keys(e *unstable.Node, path string, isList bool) string {
	it := e.Key()
	for l.entries <= maxEntries && it.Next() {
		path = cut(join(path, string(it.Node().Data)))
		l.note(path, it.Node())
		last := it.IsLast()
		switch {
		case isList && last:
			l.length[path]++
			path = cut(path + index(l.length[path]-1))
			l.note(path, it.Node())
		case l.length[path] > 0 && !last:
			path = cut(path + index(l.length[path]-1)) // [list.table] belongs to the last item
		}
	}
	return path
}

func (l *locator) value(v *unstable.Node, path string) {
	it := v.Children()
	switch v.Kind {
	case unstable.Array:
		for i := 0; l.entries <= maxEntries && it.Next(); i++ {
			at := cut(path + index(i))
			l.note(at, it.Node())
			l.value(it.Node(), at)
		}
	case unstable.InlineTable:
		for l.entries <= maxEntries && it.Next() {
			l.keyValue(it.Node(), path)
		}
	}
}

// note keeps the first position of a path. Nested lists have none.
func (l *locator) note(path string, n *unstable.Node) {
	l.entries++
	if _, ok := l.found[path]; ok || n.Raw.Length == 0 {
		return
	}
	offset := int(n.Raw.Offset)
	line, ok := slices.BinarySearch(l.lines, offset)
	if !ok {
		line--
	}
	l.found[path] = position{line + 1, offset - l.lines[line] + 1}
}

func (ps positions) of(path string) position {
	for path = cut(path); path != ""; {
		if p, ok := ps[path]; ok {
			return p
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return position{}
}

func lines(data []byte) []int {
	begins := []int{0}
	for i, b := range data {
		if b == '\n' {
			begins = append(begins, i+1)
		}
	}
	return begins
}

// syntax keeps only go-toml's message, because the rest quotes lines that may hold a secret.
func syntax(name string, data []byte, err error) Problem {
	const remedy = "see https://toml.io, and configs/cniscope.toml for an example"
	p := Problem{Source: name, What: "is not TOML", Remedy: remedy}
	de, is := errors.AsType[*toml.DecodeError](err)
	if !is {
		return p
	}
	p.Line, p.Column = de.Position()
	said := strings.TrimPrefix(de.Error(), "toml: ")
	p.What += " (" + said + ")"
	all := strings.Split(string(data), "\n")
	if p.Line < 1 || p.Line > len(all) {
		return p
	}
	if remedy := syntaxRemedy(said, strings.TrimSpace(all[p.Line-1])); remedy != "" {
		p.Remedy = remedy
	}
	return p
}

var (
	yamlLine     = regexp.MustCompile(`^-? ?[\w.-]+:( |$)`)
	decimalComma = regexp.MustCompile(`= *\d+,\d+`)
	bareWord     = regexp.MustCompile(`= *[A-Za-z/~$*.:]`)
)

// syntaxRemedy shows no value.
func syntaxRemedy(said, line string) string {
	key, _, _ := strings.Cut(line, "=")
	key = strings.TrimSpace(key)
	switch has := strings.Contains; {
	case strings.HasPrefix(line, "{"):
		return "this looks like JSON: write [section] on a line of its own, and key = value below it"
	case yamlLine.MatchString(line) && !has(line, "="):
		return "this looks like YAML: write [section] on a line of its own, and key = value below it"
	case has(said, "already exists"), has(said, "already defined"):
		return "write each [section] once, and each option once in it"
	case decimalComma.MatchString(line):
		return "write a point before the decimals"
	case has(said, "new lines"), has(said, "unterminated"), has(said, "unclosed"), strings.Count(line, `"`)%2 == 1:
		return "close the quotes at the end of the text"
	case strings.HasPrefix(line, "[") && !has(line, "]"):
		return "write ] after the section's name"
	case yesOrNo.MatchString(line):
		return "write true or false, without quotes"
	case has(said, "start of value"), bareWord.MatchString(line):
		return "write text in quotes: " + bareKey(key) + ` = "…"`
	case !has(line, "="):
		return "write key = value"
	}
	return ""
}

var yesOrNo = regexp.MustCompile(`(?i)= *(yes|no|on|off|true|false)\b`)

// bareKey returns "key" for an invalid key, which could be anything.
func bareKey(key string) string {
	if key == "" || len(key) > 64 || bare(strings.ReplaceAll(key, ".", "")) != strings.ReplaceAll(key, ".", "") {
		return "key"
	}
	return key
}
