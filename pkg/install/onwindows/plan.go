package onwindows

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Plan is what an installation or a removal would do. Making one changes nothing.
type Plan struct {
	Steps []Step   // all things, also those that stay as they are
	Notes []string // what the operator should know

	changes []change
	starts  bool // the service, afterwards
}

// Step is what happens to one thing.
type Step struct {
	Thing
	Does Does
	Why  string
}

// Does is what a step does.
type Does string

// What steps do. Kept is what somebody else made or changed.
const (
	Creates  Does = "new"
	Replaces Does = "changed"
	Removes  Does = "removed"
	Restores Does = "restored"
	Keeps    Does = "kept"
	Same     Does = "as it is"
)

type change struct {
	Thing
	before, after []byte
}

// Remembered returns what was chosen at the last installation.
func Remembered(n Node, o Options) (c Choice, installed bool, err error) {
	m, err := o.read(n)
	if err != nil {
		return Choice{}, false, err
	}
	return m.Choice, len(m.Things) > 0, nil
}

// New plans an installation. Its errors say what is in the way and what to do; nothing has changed then.
func New(n Node, o Options) (*Plan, error) {
	if err := o.check(n); err != nil {
		return nil, err
	}
	before, err := o.read(n)
	if err != nil {
		return nil, err
	}
	p, after := &Plan{starts: true}, &manifest{Version: manifestVersion, Choice: o.Choice}
	wish := o.wish()
	for _, e := range slices.Backward(before.Things) {
		if !slices.ContainsFunc(wish, func(w wanted) bool { return w.Thing == e.Thing }) {
			if err := p.remove(n, e, false); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range wish {
		if err := p.want(n, w, before, after); err != nil {
			return nil, err
		}
	}
	if err := p.record(n, o, before, after); err != nil {
		return nil, err
	}
	p.advise(o)
	return p, nil
}

// want compares what should be there with what is.
func (p *Plan) want(n Node, w wanted, before, after *manifest) error {
	now, err := n.Read(w.Thing)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Thing, err)
	}
	e, ours := before.entry(w.Thing)
	// A crash came between the manifest and the thing: it is still to be made.
	made := ours && (e.wrote(now) || !same(now, e.Before))
	if w.merges != nil {
		base := now
		if made { // the choice may be another one now
			base = e.undone(now)
		}
		if w.data, err = w.merges(base); err != nil {
			return err
		}
		if !made {
			e.Before = now
		}
		e.Set = added(base, w.data)
	}
	does, why := decide(w, now, e, made)
	if does == Keeps && w.foreign != "" && !made {
		return fmt.Errorf("%s: %s", w.Thing, w.foreign)
	}
	if !ours && (does == Creates || does == Replaces) {
		e.Before = now
	}
	if ours || does == Creates || does == Replaces {
		e.Thing = w.Thing
		if does != Keeps {
			e.Digest, e.Earlier = digest(w.data), nil
		}
		after.Things = append(after.Things, e)
	}
	p.step(w.Thing, now, w.data, does, why)
	return nil
}

// decide says what is to be done where w should be and now is.
func decide(w wanted, now []byte, e entry, made bool) (Does, string) {
	switch {
	case now == nil:
		return Creates, ""
	case same(now, w.data):
		return Same, ""
	case w.merges != nil:
		return Replaces, "the other variables stay"
	case made && e.wrote(now):
		return Replaces, ""
	case made:
		return Keeps, "it was changed since it was installed"
	}
	return Keeps, "it was there before cniscope was installed"
}

// added are the lines of an environment that another one lacks.
func added(before, after []byte) (lines []string) {
	was := linesOf(before)
	for _, l := range linesOf(after) {
		if !slices.Contains(was, l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// NewRemoval plans to take away everything that was installed; with purge also what was changed since.
func NewRemoval(n Node, o Options, purge bool) (*Plan, error) {
	m, err := o.read(n)
	if err != nil {
		return nil, err
	}
	if len(m.Things) == 0 {
		return nil, fmt.Errorf("cniscope is not installed: there is no %s", o.manifest())
	}
	p := &Plan{}
	folders := []entry{}
	for _, e := range slices.Backward(m.Things) {
		if e.Kind == Folder { // when everything in them is gone, the manifest too
			folders = append(folders, e)
			continue
		}
		if err := p.remove(n, e, purge || o.serves(n, e.Thing)); err != nil {
			return nil, err
		}
	}
	if err := p.record(n, o, m, nil); err != nil {
		return nil, err
	}
	for _, e := range slices.Concat(o.leftovers(n), folders) {
		if err := p.remove(n, e, purge); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// serves reports whether a thing is a service that runs the installed program: without that it is of no use, whatever
// else of it was changed.
func (o Options) serves(n Node, t Thing) bool {
	var is ServiceConfig
	now, err := n.Read(t)
	return err == nil && t.Kind == Service && json.Unmarshal(now, &is) == nil && is.Runs == o.runs()
}

// unfinished ends the name of a file that is being written.
const unfinished = ".new"

// leftovers are what cniscope itself makes where the options leave it: the lock of the node, and its folder; and what
// an installation that was cut off had not put in its place.
func (o Options) leftovers(n Node) (all []entry) {
	run := o.folder() + `\run`
	for _, t := range []Thing{
		{File, run + `\node.lock`},
		{Folder, run},
		{File, o.program() + unfinished},
		{File, o.options() + unfinished},
		{File, o.manifest().Name + unfinished},
	} {
		if now, err := n.Read(t); err == nil && now != nil {
			all = append(all, entry{Thing: t, Digest: digest(now)})
		}
	}
	return all
}

// remove takes away one thing, or brings back what was there.
func (p *Plan) remove(n Node, e entry, purge bool) error {
	now, err := n.Read(e.Thing)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Thing, err)
	}
	does, why, after := Removes, "", e.Before
	switch {
	case now == nil || same(now, e.Before):
		return nil
	case e.Kind == Environment:
		if after = e.undone(now); same(after, now) {
			does, why = Keeps, "the variables that were added are not there any more"
		}
	case !e.wrote(now) && !purge:
		does, why = Keeps, "it was changed since it was installed; --purge removes it"
	}
	if does == Removes && after != nil {
		does = Restores
	}
	if e.Thing == (Thing{Environment, runtime}) && does != Keeps {
		p.Notes = append(p.Notes, readsEnvironment)
	}
	p.step(e.Thing, now, after, does, why)
	return nil
}

const readsEnvironment = "containerd reads its environment when it starts, and pods stay as they are then: Restart-Service containerd"

func (p *Plan) step(t Thing, before, after []byte, does Does, why string) {
	p.Steps = append(p.Steps, Step{t, does, why})
	if does != Same && does != Keeps {
		p.changes = append(p.changes, change{t, before, after})
	}
}

func (p *Plan) advise(o Options) {
	does := func(t Thing) Does {
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Thing == t })
		if i < 0 {
			return ""
		}
		return p.Steps[i].Does
	}
	if does(Thing{File, o.options()}) == Creates {
		p.Notes = append(p.Notes, "say where the spans go: endpoint in [export.otlp] of "+o.options())
	}
	if d := does(Thing{Environment, runtime}); d == Creates || d == Replaces {
		p.Notes = append(p.Notes, readsEnvironment)
	}
}

// Changes reports whether the plan does anything.
func (p *Plan) Changes() bool { return len(p.changes) > 0 }

// same reports whether two things are the same; one that is not there is not an empty one.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func digest(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
