package spool

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// Dropped counts operations removed before their export.
type Dropped struct {
	Full, Old uint64 // because of MaxBytes and MaxAge
}

// Append writes an operation, removing old ones, without waiting for the disk. After an error nothing is written.
// Return counts removed operations that Peek had returned.
func (s *Spool) Append(op Operation) (Dropped, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursor.file == nil {
		return Dropped{}, fmt.Errorf("append to the spool: %w", os.ErrClosed)
	}
	if len(op.Data) > maxData {
		return Dropped{}, fmt.Errorf("append to the spool: an operation of %d bytes, %d at most", len(op.Data), maxData)
	}
	s.scratch = encode(s.scratch[:0], op)
	dropped := s.trim(int64(len(s.scratch)))
	err := s.write(s.scratch)
	for errors.Is(err, syscall.ENOSPC) && s.removeExported() {
		err = s.write(s.scratch)
	}
	if err != nil {
		return dropped, fmt.Errorf("append to the spool: %w", err)
	}
	return dropped, nil
}

// Trim removes operations older than MaxAge.
func (s *Spool) Trim() Dropped {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursor.file == nil {
		return Dropped{}
	}
	return s.trim(0)
}

func (s *Spool) write(record []byte) error {
	if s.active == nil || s.ripe(int64(len(record))) {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	g := &s.segments[len(s.segments)-1]
	if _, err := s.active.WriteAt(record, g.size); err != nil {
		return errors.Join(err, s.active.Truncate(g.size))
	}
	if g.size == 0 {
		g.born = s.now()
	}
	g.size += int64(len(record))
	g.last = s.now()
	s.dirty = true
	return nil
}

func (s *Spool) ripe(bytes int64) bool {
	g := s.segments[len(s.segments)-1]
	return g.size > 0 &&
		(g.size+bytes > min(maxSegment, s.options.MaxBytes/segments) || s.now()-g.born > s.options.MaxAge/generations)
}

func (s *Spool) rotate() error {
	next := segment{sequence: s.cursor.at.Segment + 1}
	if n := len(s.segments); n > 0 {
		next.sequence = max(next.sequence, s.segments[n-1].sequence+1)
	}
	f, err := s.root.OpenFile(next.name(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if s.active != nil {
		s.sealed = append(s.sealed, opened{s.active, s.segments[len(s.segments)-1].sequence})
	}
	s.active, s.made = f, true
	s.segments = append(s.segments, next)
	return nil
}

func (s *Spool) trim(bytes int64) (dropped Dropped) {
	for len(s.segments) > 1 && s.size()+bytes > s.options.MaxBytes {
		waiting, taken := s.remove(0)
		dropped.Full += waiting
		s.taken.removed.Full += taken
	}
	// The newest segment is written to, so it is replaced before it is removed.
	if n := len(s.segments); n > 0 && s.segments[n-1].size > 0 && s.old(s.segments[n-1]) {
		_ = s.rotate() // a later call tries again
	}
	for len(s.segments) > 1 && s.old(s.segments[0]) {
		waiting, taken := s.remove(0)
		dropped.Old += waiting
		s.taken.removed.Old += taken
	}
	return dropped
}

func (s *Spool) old(g segment) bool { return s.now()-g.last > s.options.MaxAge }

func (s *Spool) removeExported() bool {
	if len(s.segments) < 2 || s.segments[0].settled(s.cursor.at) < s.segments[0].size {
		return false
	}
	s.remove(0)
	return true
}

// remove deletes a segment and counts its unexported operations: waiting, and taken by Peek.
func (s *Spool) remove(i int) (waiting, taken uint64) {
	g := s.segments[i]
	settled := g.settled(s.cursor.at)
	behind := max(settled, g.settled(s.taken.to))
	taken, waiting = s.count(g, settled, behind), s.count(g, behind, g.end())
	// If this fails, the next Open finds it.
	_ = s.root.Remove(g.name())
	s.segments = slices.Delete(s.segments, i, i+1)
	// Blocks are freed after the last close.
	s.sealed = slices.DeleteFunc(s.sealed, func(o opened) bool { return o.closed(g) })
	if s.reading.closed(g) {
		s.reading = opened{}
	}
	if taken+waiting > 0 {
		// The segment is gone even if the cursor cannot be written.
		_ = s.cursor.set(Position{Segment: g.sequence + 1})
	}
	return waiting, taken
}

func (s *Spool) count(g segment, from, to int64) (n uint64) {
	if from >= to {
		return 0
	}
	f, err := s.open(g)
	if err != nil {
		f, err = s.open(g) // one retry for a failing disk
	}
	if err != nil {
		return 1 // or more
	}
	scan := scanner{r: f, at: from, end: to}
	for {
		_, err := scan.header()
		if err == nil {
			n++
		} else if scan.at >= scan.end {
			return n
		}
	}
}
