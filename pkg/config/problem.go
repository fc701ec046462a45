package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

// Problem is one thing that is wrong with the options, and what to do about it.
type Problem struct {
	Source       string // the file, "NRI configuration" or "environment"
	Line, Column int    // count from 1; 0 where not known
	Key          string // as "slow.command"; empty where the whole text is meant
	What         string // never holds the value of a secret
	Remedy       string // what would be right
}

// Error returns "file:line:column: key: what: remedy".
func (p Problem) Error() string {
	at := p.Source
	if p.Line > 0 {
		at += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	parts := []string{at}
	for _, part := range []string{text.Clean(p.Key, text.Bound), p.What, p.Remedy} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems is all that is wrong, in the order of the text: people mend a file in
// one go, not by one start for each mistake.
type Problems []Problem

// problemsShown bounds an error's length: a file that is not ours at all has a mistake on every line.
const problemsShown = 20

// Error returns the problems, one a line.
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

// Unwrap returns the single problems, for errors.As.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// err returns the problems in the order of the text, nil if there are none.
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

// fault is what is wrong with the value of an option, before its place is known.
type fault struct {
	// under is the path below the option: "", "[1]", "[0].threshold", ".x-token".
	under        string
	what, remedy string
}

func wrong(remedy, what string, args ...any) *fault {
	return &fault{what: fmt.Sprintf(what, args...), remedy: remedy}
}

// below moves faults found in a part of a value under that part's path.
func below(path string, faults []*fault) []*fault {
	for _, f := range faults {
		f.under = path + f.under
	}
	return faults
}

// at is the problem that f is with the option key of a source.
func (f *fault) at(source string, where positions, key string) Problem {
	key += f.under
	p := where.of(key)
	return Problem{Source: source, Line: p.line, Column: p.column, Key: key, What: f.what, Remedy: f.remedy}
}
