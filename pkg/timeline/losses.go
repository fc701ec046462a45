package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
)

// losses are those below roots that are not known yet: losses are told as they happen, events
// when they are read.
type losses struct {
	limit int
	early []belated
	late  *uint64 // Stats.Late
}

// belated is a loss of a run that is not known yet.
type belated struct {
	*event.Lost
	told int64
	of   []*active.Operation // whose it turned out to be
}

// later keeps a loss until everything that was sent before it was told has been read.
func (s *losses) later(now int64, l *event.Lost) {
	if len(s.early) >= s.limit {
		*s.late++
		s.early = slices.Delete(s.early, 0, 1)
	}
	s.early = append(s.early, belated{Lost: l, told: now})
}

// belongs gives op the losses of root that were told since then, before the root was known to be op's.
func (s *losses) belongs(root event.Process, op *active.Operation, since int64) {
	for i := range s.early {
		if b := &s.early[i]; b.Process == root && b.told >= since && !slices.Contains(b.of, op) {
			b.of = append(b.of, op)
			op.Lose(b.Lost)
		}
	}
}

// forget drops those of roots that nobody will tell of any more: strangers, and runs that are over.
func (s *losses) forget(now int64) {
	s.early = slices.DeleteFunc(s.early, func(b belated) bool {
		if b.told < now && len(b.of) == 0 {
			*s.late++
		}
		return b.told < now
	})
}
