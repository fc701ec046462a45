package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"
)

// Read yields the operations in a spool that ended at since or later, in the order they
// were appended, exported or not. Another process may write to it meanwhile. A
// *DamagedError is followed by what comes behind; any other error is the last.
func Read(dir string, since time.Time) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			yield(Operation{}, fmt.Errorf("spool %s: %w", dir, err))
			return
		}
		defer root.Close()
		all, err := list(root)
		if err != nil {
			yield(Operation{}, fmt.Errorf("spool %s: %w", dir, err))
			return
		}
		for i, g := range all {
			if g.modified.Before(since) {
				continue
			}
			if !read(root, g, i == len(all)-1, since, yield) {
				return
			}
		}
	}
}

// read yields what is in one segment. The newest may end in the middle of a record that
// is just being written.
func read(root *os.Root, g segment, newest bool, since time.Time, yield func(Operation, error) bool) (more bool) {
	f, err := root.Open(g.name())
	if errors.Is(err, fs.ErrNotExist) {
		return true // it was the oldest
	}
	if err != nil {
		return yield(Operation{}, fmt.Errorf("spool %s: %w", root.Name(), err)) && false
	}
	defer f.Close()
	scan := scanner{r: f, end: g.size}
	var damaged *DamagedError // said when something whole comes behind it
	for {
		op, wanted, err := scan.since(since)
		var here *DamagedError
		switch {
		case errors.As(err, &here):
			if damaged == nil {
				damaged = &DamagedError{File: g.name(), From: here.From}
			}
			damaged.To = here.To
			continue
		case err != nil: // the end
			return damaged == nil || newest || yield(Operation{}, damaged)
		}
		if damaged != nil && !yield(Operation{}, damaged) {
			return false
		}
		damaged = nil
		if wanted && !yield(op, nil) {
			return false
		}
	}
}

// since moves behind the next record, and returns it if it ended at that time or later.
func (s *scanner) since(t time.Time) (op Operation, wanted bool, err error) {
	h, err := s.header()
	if err != nil || time.Unix(0, h.end).Before(t) {
		return op, false, err
	}
	data, err := s.data(h)
	return h.operation(data), true, err
}
