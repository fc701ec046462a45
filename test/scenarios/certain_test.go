//go:build linux

package scenarios

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/spans"
	"github.com/cniscope/cniscope/test/standin"
)

// slack bounds the difference between a journal's and a span's clock, in ns.
const slack = int64(10 * time.Millisecond)

type truth struct {
	byPID map[string][]standin.Entry
	of    map[string][]standin.Entry // by container
	wall  int64                      // offset of a journal's times
}

func truthOf(n *standin.Node) *truth {
	t := &truth{byPID: map[string][]standin.Entry{}, of: map[string][]standin.Entry{}, wall: time.Now().UnixNano() - standin.Now()}
	for _, e := range n.Journal("") {
		e.Start, e.End = e.Start+t.wall, e.End+t.wall
		t.of[e.Container] = append(t.of[e.Container], e)
		if e.What == "command" || e.What == "delegate" {
			t.byPID[strconv.Itoa(e.PID)] = append(t.byPID[strconv.Itoa(e.PID)], e)
		}
	}
	return t
}

// certain compares the statements marked certain with the programs' journal, and returns their
// number.
func (s *scene) certain(n *standin.Node, report bool) (statements int) {
	s.Helper()
	all, err := spans.Read(s.spans)
	harness.Check(s, err)
	t, byID, kinds := truthOf(n), map[string]*span{}, map[string]int{}
	for _, x := range all {
		byID[x.TraceID+x.SpanID] = x
		if x.Attrs["cniscope.attribution"] != "certain" {
			continue
		}
		statements++
		kinds[x.Attrs["cniscope.kind"]]++
		if report && !t.confirms(x, byID) {
			s.Errorf("%s (%s) is said to be certain for %s, which nothing confirms: %v", x.Name, x.Attrs["cniscope.kind"], x.Attrs["sandbox.id"], x.Attrs)
		}
	}
	if report {
		s.Logf("certain: %v", kinds)
	}
	return statements
}

// confirms reports whether the journal agrees: a process by its PID, anything else by container and time.
func (t *truth) confirms(x *span, byID map[string]*span) bool {
	container := x.Attrs["sandbox.id"]
	start, _ := strconv.ParseInt(x.StartTimeUnixNano, 10, 64)
	end, _ := strconv.ParseInt(x.EndTimeUnixNano, 10, 64)
	during := func(e standin.Entry) bool { return e.Start-slack <= start && end <= e.End+slack }
	switch x.Attrs["cniscope.kind"] {
	case "command", "run", "delegate":
		for at := x; at != nil; at = byID[at.TraceID+at.ParentSpanID] { // a command's child is not in the journal
			if did := t.byPID[at.Attrs["process.pid"]]; len(did) > 0 {
				return slices.ContainsFunc(did, func(e standin.Entry) bool { return e.Container == container && during(e) })
			}
		}
		return false
	case "request", "interface":
		name := x.Attrs["network.interface.name"]
		if slices.Contains([]string{"", "eth0", "lo"}, name) || name == standin.PortOf(container) {
			return slices.ContainsFunc(t.of[container], func(e standin.Entry) bool { return e.What == "call" && during(e) })
		}
		return false
	case "agent":
		peer := cmp.Or(x.Attrs["cniscope.agent"], x.Attrs["cniscope.peer"])
		return slices.ContainsFunc(t.of[container], func(e standin.Entry) bool {
			return e.What == "exchange" && (peer == "" || e.Name == peer || e.Name == standin.Database && peer == standin.Switch) && during(e)
		})
	}
	return slices.ContainsFunc(t.of[container], func(e standin.Entry) bool { return e.What == "call" && during(e) })
}
