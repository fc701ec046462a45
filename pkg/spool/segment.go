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
	// sequence is never reused.
	sequence uint64
	size     int64
	modified time.Time
	// born and last are the times of the first and last append, by Spool.now; 0 if Open found the segment.
	born, last time.Duration
}

// Position is a place between two records.
type Position struct {
	Segment uint64
	Offset  int64
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Offset, q.Offset))
}

var segmentName = regexp.MustCompile(`^[0-9a-f]{16}\.segment$`)

func (g segment) name() string { return fmt.Sprintf("%016x.segment", g.sequence) }

func (g segment) settled(p Position) int64 {
	switch {
	case g.sequence < p.Segment:
		return g.size
	case g.sequence > p.Segment:
		return 0
	}
	return min(p.Offset, g.size)
}

// end bounds reading, should another program have put a larger file there.
func (g segment) end() int64 { return min(g.size, maxSegment) }

// UnreadableError means that a segment is unreadable from byte From on.
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
			continue // removed after the listing
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

func (o opened) closed(g segment) bool {
	if o.File == nil || o.sequence != g.sequence {
		return false
	}
	_ = o.Close()
	return true
}

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
