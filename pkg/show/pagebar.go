package show

import (
	"fmt"
	"strconv"
	"strings"
)

// restLeast is the share of all time from which a part that nobody lost time to is named.
const restLeast = 0.01

// segment is a piece of the bar that shows where the time of all calls went.
type segment struct {
	// Class is its colour, Label what is written on it, where there is room; Middle is where.
	Class, Label, Middle string
	bar
}

// lost is a cause in the list below the bar.
type lost struct {
	Spent
	Class, Took, Percent string
	Worst                *head
}

// spent is where the time of all calls went, as the page shows it.
type spent struct {
	Segments []segment
	// Lost are the causes that took most, Few the others.
	Lost []lost
	Few  *fewCauses
	// Rest are the parts in which nothing was slow, in a line.
	Rest string
	// All is the time of all calls.
	All string
}

// Spent is where the time of all calls went; nil if it took none.
func (p *page) Spent() *spent {
	if p.account.total <= 0 {
		return nil
	}
	s := &spent{All: inMS(p.account.total).String()}
	at := 0.0
	var rest []string
	for _, what := range p.account.list() {
		class := "rest"
		if what.Cause != "" {
			class = "c" + strconv.Itoa(len(s.Lost)%causeColors)
			l := lost{Spent: what, Class: class, Took: inMS(what.Time).String(), Percent: share(what.Share)}
			if what.Worst != nil {
				l.Worst = &what.Worst.head
			}
			s.Lost = append(s.Lost, l)
		} else if what.Share >= restLeast {
			rest = append(rest, what.Name+" "+share(what.Share))
		}
		s.Segments = append(s.Segments, segmentOf(what, class, at))
		at += what.Share
	}
	if len(rest) > 0 {
		s.Rest = "Nothing was slow in "
		if len(s.Lost) > 0 {
			s.Rest += "the rest: "
		}
		s.Rest += strings.Join(rest, " · ")
	}
	if more := len(s.Lost) - causesFirst; more > 1 {
		few := s.Lost[causesFirst:]
		sum := 0.0
		for _, l := range few {
			sum += l.Share
		}
		s.Few = &fewCauses{fmt.Sprintf("%s, of %s together", plural(more, "more cause"), share(sum)), few}
		s.Lost = s.Lost[:causesFirst]
	}
	return s
}

// fewCauses are those that took less than the first ones, behind a title.
type fewCauses struct {
	Title string
	Lost  []lost
}

// causesFirst is how many causes a page tells at once: what a person takes in at a glance.
const causesFirst = 5

// causeColors is how many colours page.css has for causes.
const causeColors = 6

// segmentOf is a segment that begins at a share of the bar. Its label has some 7 pixels for each
// letter, of a bar that has 900 at least where there is a label.
func segmentOf(what Spent, class string, at float64) segment {
	s := segment{Class: class, bar: bar{percent(100 * at), percent(100 * what.Share)}, Middle: percent(100 * (at + what.Share/2))}
	if label := what.Name + " " + share(what.Share); 900*what.Share > float64(7*len(label)+14) {
		s.Label = label
	}
	return s
}

// share writes a share as people do: 61 %, and less than 1 %.
func share(of float64) string {
	if of < 0.01 {
		return "<1 %"
	}
	return strconv.FormatFloat(100*of, 'f', 0, 64) + " %"
}
