package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
