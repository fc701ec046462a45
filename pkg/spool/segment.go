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

func list(root disk.FS) ([]segment, error) {
	entries, err := root.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, e := range entries {
		if !e.Type().IsRegular() || !segmentName.MatchString(e.Name()) {
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
			return nil, err
		}
		all = append(all, segment{sequence: sequence, size: info.Size(), modified: info.ModTime()})
	}
	slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.sequence, b.sequence) })
	return all, nil
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
