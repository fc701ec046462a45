package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// retriedCommand: a plugin slept after each failure of a command.
func retriedCommand(e *evidence) (f *finding) {
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent != nil || s.candidate {
			continue
		}
		last, all := map[string]*model.Image{}, map[string]*pauses{}
		for _, im := range s.image.Children {
			if im.Run != nil || im.Hidden > 0 {
				continue
			}
			key := im.Name + "\x00" + strings.Join(im.Args, "\x00")
			if failed := last[key]; failed != nil && failed.Code != 0 {
				if all[key] == nil {
					all[key] = &pauses{}
				}
				if d := e.napped(i, failed.End, im.Start); d >= pause {
					all[key].add(failed, d)
				}
			}
			last[key] = im
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			p := all[key]
			if d := e.napped(i, last[key].End, s.end); p.n > 1 && last[key].Code != 0 && d >= pause {
				p.add(last[key], min(p.time/time.Duration(p.n), d))
			}
			if p.n > 1 && (f == nil || p.time > f.time) {
				f = &finding{Verdict: p.verdict(s), time: p.time, kind: Sleep}
			}
		}
	}
	return f
}

func (p *pauses) verdict(s *span) Verdict {
	return Verdict{
		Cause: CauseCommand,
		Says: fmt.Sprintf("%s exited with %d%s, and plugin %s ran it again (%s)",
			p.last.Name, p.last.Code, because(p.last), s.plugin, p),
		Remedy: fmt.Sprintf("run %s by hand in the same network namespace, and fix what it reports: plugin %s sleeps and "+
			"tries again because it fails", commandLine(p.last), s.plugin),
	}
}

// napped includes the command sleep.
func (e *evidence) napped(at int, start, end int64) time.Duration {
	sum := e.sleptBetween(at, start, end)
	for i := range e.spans {
		if s := &e.spans[i]; s.command() && s.image.Name == "sleep" && s.plugin == e.spans[at].plugin {
			sum += time.Duration(max(0, min(s.own, s.end-start, end-s.start)))
		}
	}
	return sum
}
