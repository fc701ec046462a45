package spool

import (
	"errors"
	"fmt"
	"io"
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
			if g.last.Before(since) {
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
	for {
		h, err := scan.header()
		if errors.Is(err, io.EOF) {
			return true
		}
		var data []byte
		if err == nil {
			if time.Unix(0, h.end).Before(since) {
				continue
			}
			data, err = scan.data(h)
		}
		var damaged *DamagedError
		switch {
		case err == nil:
			more = yield(h.operation(data), nil)
		case newest && scan.at >= scan.end:
			return true
		case errors.As(err, &damaged):
			damaged.File = g.name()
			more = yield(Operation{}, damaged)
		}
		if !more {
			return false
		}
	}
}
