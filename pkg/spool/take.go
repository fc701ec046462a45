package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Record is an operation that waits to be exported.
type Record struct {
	Operation
	// Next is the position behind it.
	Next Position
	// Damaged is how many damaged stretches lie before it, since the record before. Each
	// was an operation or more.
	Damaged uint64
}

// Peek returns the operations behind the cursor, oldest first: n at most, and no more than hold bytes
// together, but one in any case if there is one. They stay where they are until Advance. It fails where a
// segment cannot be opened; what is damaged is passed over.
func (s *Spool) Peek(n int, bytes int) (found []Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var damaged uint64
	for _, g := range s.segments {
		settled := g.settled(s.cursor.at)
		if settled >= g.size {
			continue
		}
		f, err := s.open(g)
		if errors.Is(err, fs.ErrNotExist) {
			damaged++ // somebody removed it
			continue
		}
		if err != nil {
			return found, fmt.Errorf("read the spool: %w", err)
		}
		scan := scanner{r: f, at: settled, end: g.end()}
		for len(found) < n {
			h, err := scan.header()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				damaged++
				continue
			}
			if bytes -= int(h.length); bytes < 0 && len(found) > 0 {
				return found, nil
			}
			data, err := scan.data(h)
			if err != nil {
				damaged++
				continue
			}
			found = append(found, Record{h.operation(data), Position{g.sequence, h.next()}, damaged})
			damaged = 0
		}
	}
	return found, nil
}

// Advance marks everything before a position as done, durably by the time it returns. A cursor
// that is already further stays where it is.
func (s *Spool) Advance(to Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursor.file == nil {
		return fmt.Errorf("advance in the spool: %w", os.ErrClosed)
	}
	if to.compare(s.cursor.at) <= 0 {
		return nil
	}
	s.dirty = true
	return s.cursor.set(to)
}
