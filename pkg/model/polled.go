package model

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// Polled returns the paths that the image polled for, by their facts.
func (im *Image) Polled() iter.Seq2[*Fact, *Missing] {
	return func(yield func(*Fact, *Missing) bool) {
		for f, m := range Each[*Missing](im.Facts) {
			if !im.copes(f, m) && !im.Searches(m) && !yield(f, m) {
				return
			}
		}
	}
}

// Searches reports a search in PATH: a child has the name, or another directory of programs lacks it.
func (im *Image) Searches(m *Missing) bool {
	if m.Error == "EEXIST" {
		return false
	}
	name := path.Base(m.Path)
	if slices.ContainsFunc(im.Children, func(c *Image) bool { return c.Run == nil && c.Name == name }) {
		return true
	}
	for _, other := range Each[*Missing](im.Facts) {
		if other.Path != m.Path && path.Base(other.Path) == name && im.inPATH(other.Path) && im.inPATH(m.Path) {
			return true
		}
	}
	return false
}

// inPATH excludes plugins' directories.
func (im *Image) inPATH(file string) bool {
	dir := path.Dir(file)
	plugins := strings.Contains(dir, "cni") || im.Run != nil && dir == path.Dir(im.File)
	return !plugins && (path.Base(dir) == "bin" || path.Base(dir) == "sbin")
}

// copes reports whether the last try was by a command that succeeded at once, such as mkdir -p.
func (im *Image) copes(f *Fact, m *Missing) (copes bool) {
	im.walkBelow(func(c *Image) {
		if c.Process == m.Process && c.Run == nil && c.Ended && !c.Failed() && c.End-c.Start < m.Period(f.When) {
			copes = true
		}
	})
	return copes
}

// Polls returns the path that a process of the run polls for at an instant, or empty.
func (im *Image) Polls(at int64) (file string) {
	im.Walk(func(im *Image) {
		for f, m := range im.Polled() {
			if m.Lasts(f.When, at) {
				file = m.Path
			}
		}
	})
	return file
}
