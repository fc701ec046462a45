package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Record is an operation to export.
type Record struct {
	Operation
	Next Position
	// Damaged counts damaged ranges before it.
	Damaged uint64
}

// taken is what Peek returned and is not settled. Only the reader knows whether removed operations were lost.
type taken struct {
	to      Position
	removed Dropped
}

// Peek returns the oldest operations behind the cursor: up to n, and up to bytes in total, but one if there is any.
// They stay until Advance or Return. It skips damaged records.
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
			damaged++ // another process removed the file
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

// Advance marks everything before a position as exported. It never moves the cursor back.
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

// Return settles undelivered operations that Peek returned, and counts those that the spool removed since.
func (s *Spool) Return() Dropped {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := s.taken.removed
	s.taken = taken{}
	return removed
}
