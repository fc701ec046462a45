package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/text"
)

const restLeast = 0.01

type segment struct {
	// The color, the text if it fits, and its position.
	Class, Label, Middle string
	bar
}

type lost struct {
	Spent
	Class, Took, Percent string
	Worst                *head
}

type spent struct {
	Segments []segment
	Lost     []lost
	Few      *fewCauses
	Rest     string
	All      string
}

func (p *page) Spent() *spent {
	if p.account.total <= 0 {
		return nil
	}
	s := &spent{All: inMS(p.account.total).String()}
	at := 0.0
	all := named(p.account.list())
	for _, what := range all {
		class := "rest"
		if what.Cause != "" {
			class = "c" + strconv.Itoa(len(s.Lost)%causeColors)
			l := lost{Spent: what, Class: class, Took: inMS(what.Time).String(), Percent: share(what.Share)}
			if what.Worst != nil {
				l.Worst = &what.Worst.head
			}
			s.Lost = append(s.Lost, l)
		}
		s.Segments = append(s.Segments, segmentOf(what, class, at))
		at += what.Share
	}
	if rest := restOf(all); rest != "" {
		s.Rest = strings.ToUpper(rest[:1]) + rest[1:]
	}
	if more := len(s.Lost) - causesFirst; more > 1 {
		few := s.Lost[causesFirst:]
		sum := 0.0
		for _, l := range few {
			sum += l.Share
		}
		s.Few = &fewCauses{fmt.Sprintf("%s, %s together", text.Count(more, "more cause"), share(sum)), few}
		s.Lost = s.Lost[:causesFirst]
	}
	return s
}

var restNames = map[string]string{"network": "network configuration", "between runs": "between plugin runs"}

// named tells time without a cause from causes.
func named(all []Spent) []Spent {
	all = slices.Clone(all)
	listed := map[string]bool{}
	for _, s := range all {
		for _, a := range judge.Accounts() {
			if s.Cause != "" && slices.Contains(judge.Cause(s.Cause).About().Parts, a.Kind) {
				listed[partName(a.Time(0).Key)] = true
			}
		}
	}
	for i := range all {
		if s := &all[i]; s.Cause == "" {
			other := listed[s.Name]
			if s.Name = cmp.Or(restNames[s.Name], s.Name); other {
				s.Name = "other " + s.Name
			}
		}
	}
	return all
}

func restOf(all []Spent) string {
	var rest []string
	title := "time: "
	for _, s := range all {
		if s.Cause == "" && s.Share >= restLeast {
			rest = append(rest, s.Name+" "+share(s.Share))
		} else if s.Cause != "" {
			title = "other time: "
		}
	}
	if rest == nil {
		return ""
	}
	return title + strings.Join(rest, " · ")
}

type fewCauses struct {
	Title string
	Lost  []lost
}

const (
	causesFirst = 5 // shown at once
	causeColors = 6 // in page.css
)

// segmentOf returns a segment, with a label if it fits: 7 pixels per character of a bar of 900.
func segmentOf(what Spent, class string, at float64) segment {
	s := segment{
		Class: class, bar: bar{percent(100 * at), percent(100 * what.Share)},
		Middle: percent(100 * (at + what.Share/2)),
	}
	if label := what.Name + " " + share(what.Share); 900*what.Share > float64(7*len(label)+14) {
		s.Label = label
	}
	return s
}

func share(of float64) string {
	if of < 0.01 {
		return "<1 %"
	}
	return strconv.FormatFloat(100*of, 'f', 0, 64) + " %"
}
