// Package spool keeps finished operations until their export, and longer for queries: on disk (Spool) or in memory.
//
// A Spool is a directory of append-only segments and a cursor, before which everything was exported or dropped. Bytes
// and age bound it; the oldest segment goes first. Appended data survives any exit of the process; Sync bounds the
// loss at a power failure. One process writes; others may Read.
package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/disk"
)

// Operation is one operation.
type Operation struct {
	// Start and End are the first and last instant of its spans.
	Start, End time.Time
	Data       []byte // OTLP TracesData
}

// Options configure a spool.
type Options struct {
	Dir      string
	MaxBytes int64 // of all segments
	// MaxAge is the age at which operations are removed, exported or not, up to 1/16 late. For those found by Open it
	// counts from Open, since the wall clock may have been set.
	MaxAge time.Duration
	Disk   disk.FS // default: the system's
}

const (
	maxSegment  = 8 << 20 // bytes
	segments    = 8       // minimum number in a full spool
	generations = 16      // minimum number of segments per MaxAge
)

// Spool is safe for concurrent use.
type Spool struct {
	options Options
	root    disk.Folder
	now     func() time.Duration // since Open, monotonic

	mu       sync.Mutex
	segments []segment
	active   disk.File // newest segment, or nil
	reading  opened
	cursor   cursor
	taken    taken
	sealed   []opened // not synced
	made     bool     // file name not synced
	dirty    bool     // data not synced
	scratch  []byte
	found    Found
}

// Found is the state that Open found on disk.
type Found struct {
	Waiting int64 // unexported bytes
	// Cut is the size of an incomplete last record, in bytes.
	Cut int64
	// CursorLost means that the cursor was invalid, so all operations are sent again.
	CursorLost bool
}

// ErrHeld means that another process has the spool open.
var ErrHeld = errors.New("another cniscope writes to it: give each a folder of its own")

// Open opens or creates a spool. It fails if other users can write to the directory or replace it, and with ErrHeld
// if another process has it open.
func Open(o Options) (*Spool, error) {
	opened := time.Now()
	s := &Spool{options: o, now: func() time.Duration { return time.Since(opened) }}
	if err := s.start(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("spool %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Spool) start() (err error) {
	if s.root, err = disk.Or(s.options.Disk).Private(s.options.Dir); err != nil {
		return err
	}
	known, err := s.cursor.open(s.root)
	if err != nil {
		return err
	}
	if s.segments, _, err = list(s.root); err != nil {
		return err
	}
	s.found.CursorLost = !known && len(s.segments) > 0
	s.made, s.dirty = !known, !known
	if err := s.resume(); err != nil {
		return err
	}
	s.found.Waiting = s.waiting()
	return nil
}

func (s *Spool) resume() error {
	if len(s.segments) == 0 {
		s.cursor.at.Offset = 0
		return nil
	}
	last := &s.segments[len(s.segments)-1]
	if last.sequence < s.cursor.at.Segment || last.size > maxSegment {
		return nil
	}
	f, err := s.root.OpenFile(last.name(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	whole, err := ends(f, last.size)
	if err != nil {
		return f.Close()
	}
	s.active = f
	if cut := last.size - whole; cut > 0 {
		if err := f.Truncate(whole); err != nil {
			return fmt.Errorf("cannot cut off an incomplete trace: %w", err)
		}
		s.found.Cut, last.size = cut, whole
	}
	// A cursor beyond the end would skip appends.
	if at := s.cursor.at; at.Segment == last.sequence {
		s.cursor.at.Offset = min(at.Offset, last.size)
	}
	return nil
}

// Found returns the state that Open found.
func (s *Spool) Found() Found { return s.found }

// Stats are sizes in bytes.
type Stats struct {
	Bytes, Waiting int64
	Segments       int
}

// Stats returns current sizes.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Bytes: s.size(), Waiting: s.waiting(), Segments: len(s.segments)}
}

func (s *Spool) size() (n int64) {
	for _, g := range s.segments {
		n += g.size
	}
	return n
}

func (s *Spool) waiting() (n int64) {
	for _, g := range s.segments {
		n += g.size - g.settled(s.cursor.at)
	}
	return n
}

// Sync writes appended data to the disk; the next call retries files that failed.
func (s *Spool) Sync() error {
	s.mu.Lock()
	sealed, made := s.sealed, s.made
	var live []disk.File
	if s.dirty {
		live = []disk.File{s.active, s.cursor.file}
	}
	s.sealed, s.made, s.dirty = nil, false, false
	s.mu.Unlock()

	var failed error
	if made {
		failed = disk.SyncFolder(s.root, ".")
	}
	var again []opened
	for _, g := range sealed {
		if err := synced(g); err != nil {
			failed, again = errors.Join(failed, err), append(again, g)
			continue
		}
		failed = errors.Join(failed, g.Close())
	}
	for _, f := range live {
		if f != nil {
			failed = errors.Join(failed, synced(f))
		}
	}
	if failed == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made, s.dirty = made || s.made, true
	for _, g := range again {
		if slices.ContainsFunc(s.segments, func(h segment) bool { return h.sequence == g.sequence }) {
			s.sealed = append(s.sealed, g)
		} else {
			_ = g.Close() // removed during the sync
		}
	}
	return fmt.Errorf("sync the spool: %w", failed)
}

func synced(f disk.File) error {
	if err := f.Sync(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Close syncs and releases the spool.
func (s *Spool) Close() error {
	err := s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	files := []disk.File{s.active, s.reading.File, s.cursor.file}
	for _, g := range s.sealed {
		files = append(files, g.File)
	}
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	s.active, s.reading, s.cursor.file, s.sealed = nil, opened{}, nil, nil
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	return err
}
