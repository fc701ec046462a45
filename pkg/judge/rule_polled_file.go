package judge

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

func polledPart(s *span, what model.What) Part {
	m := what.(*model.Missing)
	return Part{Kind: Sleep, Name: s.waiter(), Detail: fmt.Sprintf("polling for %s (%s)", m.Path, m.Error)}
}

type missedPath struct {
	*model.Missing
	when model.Interval
	by   *span
	time time.Duration // attributed to it
}

// polledFile: a plugin or its agent polled for a missing file, or for the end of a lock file.
func polledFile(e *evidence) *finding {
	var most *missedPath
	for i := range e.spans {
		s := &e.spans[i]
		for f, m := range s.image.Polled() {
			if !s.polls(f, m) || m.Error != "EEXIST" && e.runs(path.Base(m.Path)) {
				continue // a search in PATH
			}
			if p := (&missedPath{m, f.When, s, e.polling(i, f)}); most == nil || p.time > most.time {
				most = p
			}
		}
	}
	if most == nil {
		return nil
	}
	return &finding{
		Verdict: most.verdict(e), time: most.time, kind: Sleep, candidate: most.by.candidate, agent: most.by.agent,
		heldUp: most.Lasts(most.when, most.by.image.End), known: true,
	}
}

// polls excludes searches in PATH, and an agent's periodic looks for a file.
func (s *span) polls(f *model.Fact, m *model.Missing) bool {
	if s.image.Searches(m) {
		return false
	}
	return s.agent == nil || m.Count > 2 && m.Period(f.When) <= int64(5*time.Second) && !s.agent.Work.Shared.Searches(m)
}

func (e *evidence) runs(name string) bool {
	return slices.ContainsFunc(e.spans, func(s span) bool { return s.command() && s.image.Name == name })
}

// polling is the time that a plugin, or a script's sleep commands, slept from the first to the last try. If that is most
// of its sleep, all of it counts.
func (e *evidence) polling(at int, f *model.Fact) (sum time.Duration) {
	var slept time.Duration
	for i := range e.waits {
		if w := &e.waits[i]; w.part.Kind == Sleep && w.span == at {
			slept += time.Duration(w.own)
			if w.what == f.What {
				sum += time.Duration(w.own)
			}
		}
	}
	for i := range e.spans {
		if s := &e.spans[i]; s.command() && s.image.Name == "sleep" && s.plugin == e.spans[at].plugin {
			slept += time.Duration(s.own)
			sum += min(time.Duration(s.own), time.Duration(max(0, min(s.end, f.When.End)-max(s.start, f.When.Start))))
		}
	}
	if sum > slept/2 {
		return slept
	}
	return sum
}

// tried says how often the path was tried: the first tries are not seen.
func (p *missedPath) tried(what string) string {
	who, every := "plugin "+p.by.plugin, time.Duration(p.Period(p.when))
	if p.by.agent != nil {
		who = nameOf(p.by.agent)
	}
	if every > 10*time.Millisecond {
		every = every.Round(time.Millisecond)
	}
	return fmt.Sprintf("%s tried to %s it at least %d times (%s: %s), about every %s",
		who, what, p.Count, p.Name, p.Error, text.Round(every))
}

func (p *missedPath) verdict(e *evidence) Verdict {
	if p.Error != "EEXIST" {
		return Verdict{
			Cause: CauseMissingFile,
			Says:  fmt.Sprintf("file %s was missing; %s", p.Path, p.tried("find")),
			Remedy: fmt.Sprintf("start the program that writes %s, or read its log if it runs; "+
				"if %s should use another file, correct the path in its configuration", p.Path, p.by.waiter()),
		}
	}
	remove := "rm"
	if strings.HasPrefix(p.Name, "mkdir") {
		remove = "rmdir"
	}
	v := Verdict{
		Cause: CauseLockFile, Says: fmt.Sprintf("lock file %s existed; %s", p.Path, p.tried("create")),
		Remedy: fmt.Sprintf("run fuser -v %s; if a process holds the file open and hangs, "+
			"kill the process; if no process holds it open, run %s %[1]s", text.Shell(p.Path), remove),
	}.beside(p.by.plugin)
	l := e.call.LockFiles[p.Path]
	switch {
	case l == nil:
	case l.Maker == nil:
		if age := time.Duration(e.wall + e.call.Start - l.Written); age > 0 {
			v.Says += fmt.Sprintf("; it was written %s before the call", text.Round(age))
		}
	case l.Gone:
		v.Says += fmt.Sprintf("; process %d wrote it and has exited", l.Maker.PID)
		v.Remedy = fmt.Sprintf("run fuser -v %s; if no process holds it open, run %s %[1]s, because the "+
			"process that wrote it (pid %[3]d) has exited", text.Shell(p.Path), remove, l.Maker.PID)
	default:
		v.Says += fmt.Sprintf("; %s (pid %d) wrote it", l.Maker.Name, l.Maker.PID)
		v.Remedy = fmt.Sprintf("kill %s (pid %d) if it hangs; otherwise shorten its work while %s exists",
			l.Maker.Name, l.Maker.PID, p.Path)
	}
	return v
}
