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

// taken is the records that Peek returned and that neither Advance nor Return has settled. The spool may remove
// them, but only their reader knows whether they are lost.
type taken struct {
	to      Position // to is the position behind them.
	removed Dropped  // removed is how many of them the spool removed.
}

// Peek returns the operations behind the cursor, oldest first: n at most, and no more than hold bytes
// together, but one in any case if there is one. They stay where they are until Advance, or Return. It fails where
// a segment cannot be opened; what is damaged is passed over.
func (s *Spool) Peek(n int, bytes int) (found []Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err = s.peek(n, bytes)
	if len(found) > 0 {
		s.taken.to = found[len(found)-1].Next
	}
	return found, err
}

func (s *Spool) peek(n int, bytes int) (found []Record, err error) {
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
	s.taken = taken{}
	if s.cursor.file == nil {
		return fmt.Errorf("advance in the spool: %w", os.ErrClosed)
	}
	if to.compare(s.cursor.at) <= 0 {
		return nil
	}
	s.dirty = true
	return s.cursor.set(to)
}

// Return settles the operations that Peek returned and that did not arrive. Those that the spool removed since then
// are lost: Return counts them, and Append and Trim did not.
func (s *Spool) Return() Dropped {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := s.taken.removed
	s.taken = taken{}
	return removed
}
