// Package spool keeps finished operations on disk until they are exported, and some
// time longer, so that the node can be asked what happened.
//
// A spool is a folder of segments, files of records that are only ever appended to, and a cursor:
// everything before it has been exported, or given up. The ring is bounded by bytes and by age; the oldest
// segment goes first. Every record and the cursor carry a checksum.
//
// What is written survives the process, however it ends: it is in the kernel's page
// cache when Append returns. Whoever uses a spool calls Sync now and then, which bounds
// what a loss of power can take. Not at each record: containerd itself syncs its database
// several times for every pod, and the disk is not cniscope's.
//
// One process at a time writes to a spool; any number may Read it meanwhile.
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

// Operation is one operation as it is kept.
type Operation struct {
	// Start and End are the first and the last instant of its spans.
	Start, End time.Time
	Data       []byte // Data is its spans, as OTLP's TracesData.
}

// Options say where a spool is and how much it holds.
type Options struct {
	// Dir is made if it is missing.
	Dir string
	// MaxBytes is how large all segments may be together.
	MaxBytes int64
	// MaxAge is how long after its end an operation is kept, exported or not; up to a sixteenth longer,
	// since segments go as a whole. What Open finds is kept for as long from then on: the clock may have
	// been set meanwhile, and nothing tells that from a node that was off for as long.
	MaxAge time.Duration
	// Disk is where it lies; nil is the system's.
	Disk disk.FS
}

const (
	// maxSegment is the largest segment; a small spool has eight smaller ones.
	maxSegment = 8 << 20
	// segments is how many a spool is cut into at least: an eighth is forgotten at a time.
	segments    = 8
	generations = 16 // generations is how many segments, at least, MaxAge is cut into.
)

// Spool is a spool that this process writes to. It is safe for concurrent use.
type Spool struct {
	options Options
	root    disk.Folder
	// now is how long ago the spool was opened, by a clock that nobody can set.
	now func() time.Duration

	mu       sync.Mutex
	segments []segment // oldest first; the last one is written to
	active   disk.File // the last segment; nil until something is appended
	reading  opened    // the segment that was read last
	cursor   cursor
	taken    taken
	sealed   []opened // segments that are finished, but not synced
	made     bool     // a segment was begun, and its name is not synced
	dirty    bool     // something was written that is not synced
	scratch  []byte
	found    Found
}

// Found is what Open found in the folder.
type Found struct {
	// Waiting is how many bytes were not exported yet.
	Waiting int64
	// Cut is how many bytes at the end were no whole record: the process before was
	// killed, or the power failed, in the middle of one.
	Cut int64
	// CursorLost says that it is not known what was exported: all there is will be sent again.
	CursorLost bool
}

// ErrHeld is returned if another process has the spool open.
var ErrHeld = errors.New("another cniscope writes to it: give each a folder of its own")

// Open opens a spool, or makes a new one. It fails where the folder cannot be written, where others may
// write in it or choose where it is, and, with ErrHeld, where another process has it.
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
	s.made, s.dirty = !known, !known // the cursor's file is new
	if err := s.resume(); err != nil {
		return err
	}
	s.found.Waiting = s.waiting()
	return nil
}

// resume makes the newest segment ready to be written to: behind its last whole record. One that cannot be read,
// that is too large, or that the cursor has passed, is left as it is: the next one is begun then.
func (s *Spool) resume() error {
	if len(s.segments) == 0 {
		s.cursor.at.Offset = 0 // where the segments are gone, so is what it spoke of
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
			return fmt.Errorf("cut off what is not whole: %w", err)
		}
		s.found.Cut, last.size = cut, whole
	}
	// A cursor behind the end would pass over what is appended next.
	if at := s.cursor.at; at.Segment == last.sequence {
		s.cursor.at.Offset = min(at.Offset, last.size)
	}
	return nil
}

// Found returns what Open found in the folder.
func (s *Spool) Found() Found { return s.found }

// Stats is the state of a spool.
type Stats struct {
	// Bytes is what it holds, and Waiting how much of that is not exported.
	Bytes, Waiting int64
	Segments       int
}

// Stats returns the state of the spool now.
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

// waiting is how many bytes lie behind the cursor.
func (s *Spool) waiting() (n int64) {
	for _, g := range s.segments {
		n += g.size - g.settled(s.cursor.at)
	}
	return n
}

// Sync writes what was appended before to the disk. What it could not write it tries again the next time.
func (s *Spool) Sync() error {
	s.mu.Lock()
	sealed, made := s.sealed, s.made
	var live []disk.File
	if s.dirty {
		live = []disk.File{s.active, s.cursor.file}
	}
	s.sealed, s.made, s.dirty = nil, false, false
	s.mu.Unlock()

	// Without the lock: a disk may take its time.
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
			_ = g.Close() // it was forgotten meanwhile
		}
	}
	return fmt.Errorf("sync the spool: %w", failed)
}

// synced syncs a file, unless it was forgotten meanwhile.
func synced(f disk.File) error {
	if err := f.Sync(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Close syncs and releases the spool. Every later call fails.
func (s *Spool) Close() error {
	err := s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	files := []disk.File{s.active, s.reading.File, s.cursor.file}
	for _, g := range s.sealed { // those that could not be synced
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
