package baseline

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// Version is written, and the newest that is read.
	Version = 1
	// MaxBytes bounds a document; written ones reach 700 KiB.
	MaxBytes = 1 << 20

	format  = "baseline"
	maxName = 256
)

// ErrNotBaseline means another kind of document.
var ErrNotBaseline = errors.New("not a baseline of cniscope")

// Document is a serialized Book, by last use.
type Document struct {
	Format  string  `json:"cniscope"`
	Version int     `json:"version"`
	Entries []Entry `json:"entries"`
}

// Entry is the state of a key.
type Entry struct {
	Key
	Edition
	// Since is this edition's first call, ns since 1970.
	Since int64 `json:"since,omitempty"`
	// Learnt is the baseline's calls, Apart a spell's, Recent the window with calls above marked.
	Learnt Bins            `json:"learnt"`
	Apart  Bins            `json:"apart,omitzero"`
	Recent []time.Duration `json:"recent_ns,omitempty"`
	Above  []bool          `json:"above,omitempty"`
	Slower bool            `json:"slower,omitempty"`
	Former *Former         `json:"former,omitempty"`
}

// Former is a replaced edition.
type Former struct {
	Edition
	Since  int64 `json:"since,omitempty"`
	Learnt Bins  `json:"learnt"`
}

// Bins counts calls from bin First on; bin i is γ^i to γ^(i+1) ns, γ = 1.01/0.99.
type Bins struct {
	First int   `json:"first"`
	Calls []int `json:"calls"`
}

// IsZero reports whether there are no calls.
func (b Bins) IsZero() bool { return len(b.Calls) == 0 }

// Document serializes the Book.
func (b *Book) Document() *Document {
	d := &Document{Format: format, Version: Version, Entries: []Entry{}}
	for _, k := range b.byUse() {
		e := b.known[k]
		written := Entry{
			Key: k, Edition: e.edition, Since: e.since, Learnt: e.learnt.written(), Apart: e.apart.written(), Slower: e.spell,
		}
		if f := e.former; f != nil {
			written.Former = &Former{f.edition, f.since, f.learnt.written()}
		}
		for _, s := range e.recent {
			written.Recent, written.Above = append(written.Recent, s.took), append(written.Above, s.above)
		}
		d.Entries = append(d.Entries, written)
	}
	return d
}

func (s *sketch) written() (b Bins) {
	s.each(func(bin, calls int) {
		if b.Calls == nil {
			b.First = bin
		}
		b.Calls = append(append(b.Calls, make([]int, bin-b.First-len(b.Calls))...), calls)
	})
	return b
}

// Foreign drops spells, windows and configurations for another node.
func (d *Document) Foreign() *Document {
	other := *d
	other.Entries = nil
	for _, e := range d.Entries {
		if e.Learnt.IsZero() {
			continue
		}
		other.Entries = append(other.Entries, Entry{Key: e.Key, Edition: Edition{Build: e.Build}, Learnt: e.Learnt})
	}
	return &other
}

// Unconfigured drops configurations: digests with another key differ.
func (d *Document) Unconfigured() {
	for i := range d.Entries {
		d.Entries[i].Configuration = ""
		if f := d.Entries[i].Former; f != nil {
			unconfigured := *f
			unconfigured.Configuration = ""
			d.Entries[i].Former = &unconfigured
		}
	}
}

// Parse decodes a document without trusting it.
func Parse(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxBytes)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotBaseline, text.Clean(err.Error(), text.Bound))
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return &d, nil
}

func (d *Document) check() error {
	switch {
	case d.Format != format:
		return ErrNotBaseline
	case d.Version < 1 || d.Version > Version:
		return fmt.Errorf("its version is %d, and this cniscope reads version %d", d.Version, Version)
	case len(d.Entries) > Keys:
		return fmt.Errorf("it has %d entries: at most %d are kept", len(d.Entries), Keys)
	}
	known := map[Key]bool{}
	for i := range d.Entries {
		e := &d.Entries[i]
		if err := e.check(); err != nil {
			return fmt.Errorf("entry %d (%s): %w", i+1, text.Clean(e.String(), text.Bound), err)
		}
		if known[e.Key] {
			return fmt.Errorf("entry %d (%s) is there twice", i+1, e.Key)
		}
		known[e.Key] = true
	}
	return nil
}

func (e *Entry) check() error {
	var f Former
	if e.Former != nil {
		if f = *e.Former; f.Learnt.IsZero() {
			return errors.New("nothing is known of the edition before")
		}
	}
	for _, name := range []string{
		e.Network, e.Plugin, e.Command, e.Program, e.Build, e.Configuration, f.Build,
		f.Configuration,
	} {
		if text.Clean(name, maxName) != name {
			return errors.New("a name is too long, or holds what cannot be shown")
		}
	}
	if e.Plugin == "" || e.Command == "" {
		return errors.New("it names no plugin or no command")
	}
	if len(e.Recent) > window || len(e.Above) != len(e.Recent) {
		return fmt.Errorf("it has %d last calls and says of %d whether they were above: want at most %d of each",
			len(e.Recent), len(e.Above), window)
	}
	for _, took := range e.Recent {
		if took < 0 || took > longest {
			return fmt.Errorf("it has a time of %s: want 0 to %s", took, longest)
		}
	}
	if e.Since < 0 || f.Since < 0 {
		return errors.New("it has a number that cannot be")
	}
	return errorsIn(e.Learnt, e.Apart, f.Learnt)
}

func errorsIn(all ...Bins) error {
	for _, b := range all {
		calls := 0
		if len(b.Calls) > maxBins {
			return fmt.Errorf("it has %d bins: want at most %d", len(b.Calls), maxBins)
		}
		if len(b.Calls) > 0 && (b.First < binOf(0) || b.First > binOf(longest)-len(b.Calls)+1) {
			return fmt.Errorf("its bins begin at %d", b.First)
		}
		for _, n := range b.Calls {
			if n < 0 || n > Most {
				return fmt.Errorf("a bin has %d calls: want 0 to %d", n, Most)
			}
			calls += n
		}
		if calls > Most || len(b.Calls) > 0 && calls == 0 {
			return fmt.Errorf("its bins have %d calls: want 1 to %d", calls, Most)
		}
	}
	return nil
}

// Book restores a Book from Parse or Book.Document.
func (d *Document) Book() *Book {
	b := &Book{known: map[Key]*entry{}}
	for _, w := range d.Entries {
		b.calls++
		e := &entry{
			edition: w.Edition, since: w.Since, learnt: w.Learnt.sketch(), apart: w.Apart.sketch(), spell: w.Slower,
			used: b.calls,
		}
		if f := w.Former; f != nil {
			e.former = &former{f.Edition, f.Since, f.Learnt.sketch()}
		}
		for i, took := range w.Recent {
			e.recent = append(e.recent, seen{took, w.Above[i]})
		}
		b.known[w.Key] = e
	}
	return b
}

func (b Bins) sketch() (s sketch) {
	for i, n := range b.Calls {
		if n > 0 {
			s.put(b.First+i, n)
		}
	}
	return s
}
