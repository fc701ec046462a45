package config

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

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
