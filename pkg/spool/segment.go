package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/cniscope/cniscope/pkg/disk"
)

type segment struct {
	// sequence numbers segments in the order they were made. It is the file's name, and
	// is never used again.
	sequence uint64
	size     int64
	// modified is when its last record was appended, by the clock on the wall.
	modified time.Time
	// born is when its first record was appended, and last when the last one was, as
	// Spool.now tells it: 0 for what Open found.
	born, last time.Duration
}

// Position is a place in a spool: between two records.
type Position struct {
	Segment uint64
	Offset  int64
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Offset, q.Offset))
}

var segmentName = regexp.MustCompile(`^[0-9a-f]{16}\.segment$`)

func (g segment) name() string { return fmt.Sprintf("%016x.segment", g.sequence) }

// settled is how many of its bytes lie before a position.
func (g segment) settled(p Position) int64 {
	switch {
	case g.sequence < p.Segment:
		return g.size
	case g.sequence > p.Segment:
		return 0
	}
	return min(p.Offset, g.size)
}

// end is where reading it ends: a larger one was not written by this package.
func (g segment) end() int64 { return min(g.size, maxSegment) }

// UnreadableError says that a segment, or its part behind a byte, is not read. Other segments can be.
type UnreadableError struct {
	File string
	From int64
	Why  error
}

func (e *UnreadableError) Error() string {
	if e.From > 0 {
		return fmt.Sprintf("cannot read %s from byte %d on: %v", e.File, e.From, e.Why)
	}
	return fmt.Sprintf("cannot read %s: %v", e.File, e.Why)
}

func (e *UnreadableError) Unwrap() error { return e.Why }

// list returns the segments, oldest first, and what has a segment's name but is no regular file.
func list(root disk.FS) (all []segment, strange []*UnreadableError, err error) {
	entries, err := root.ReadDir(".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !segmentName.MatchString(e.Name()) {
			continue
		}
		if !e.Type().IsRegular() {
			strange = append(strange, &UnreadableError{File: e.Name(), Why: fmt.Errorf("it is %s", disk.Kind(e.Type()))})
			continue
		}
		sequence, err := strconv.ParseUint(e.Name()[:16], 16, 64)
		if err != nil {
			continue
		}
		info, err := root.Lstat(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, nil, err
		}
		all = append(all, segment{sequence: sequence, size: info.Size(), modified: info.ModTime()})
	}
	slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.sequence, b.sequence) })
	return all, strange, nil
}

type opened struct {
	disk.File
	sequence uint64
}

// closed closes it if it is that segment, and reports whether it is.
func (o opened) closed(g segment) bool {
	if o.File == nil || o.sequence != g.sequence {
		return false
	}
	_ = o.Close()
	return true
}

// open returns a segment for reading. It stays open until another one is wanted.
func (s *Spool) open(g segment) (disk.File, error) {
	if s.reading.File != nil && s.reading.sequence == g.sequence {
		return s.reading.File, nil
	}
	f, err := disk.Open(s.root, g.name())
	if err != nil {
		return nil, err
	}
	if s.reading.File != nil {
		_ = s.reading.Close()
	}
	s.reading = opened{f, g.sequence}
	return f, nil
}
