package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
)

// losses below unknown roots wait: they are reported at once, but events only when read.
type losses struct {
	limit int
	early []belated
	late  *uint64
}

type belated struct {
	*event.Lost
	told int64
	of   []*active.Operation
}

func (s *losses) later(now int64, l *event.Lost) {
	if len(s.early) >= s.limit {
		*s.late++
		s.early = slices.Delete(s.early, 0, 1)
	}
	s.early = append(s.early, belated{Lost: l, told: now})
}

func (s *losses) belongs(root event.Process, op *active.Operation, since int64) {
	for i := range s.early {
		if b := &s.early[i]; b.Process == root && b.told >= since && !slices.Contains(b.of, op) {
			b.of = append(b.of, op)
			op.Lose(b.Lost)
		}
	}
}

func (s *losses) forget(now int64) {
	s.early = slices.DeleteFunc(s.early, func(b belated) bool {
		if b.told < now && len(b.of) == 0 {
			*s.late++
		}
		return b.told < now
	})
}
