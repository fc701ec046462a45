//go:build linux

package soak

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

type key struct{ container, command, ifname string }

// unsettled is how long before a kill a call must have ended: limits.settle and 5 s, ten times as
// much if containerd was disturbed.
const (
	unsettled       = 7 * time.Second
	unsettledUnsaid = 25 * time.Second
)

// slack bounds the difference between witness and cniscope, which read one clock.
const slack = 250 * time.Millisecond

// account is the result for a round's runs.
type account struct {
	Runs, Traced int
	// Excused counts untraceable runs by reason.
	Excused map[string]int `json:",omitempty"`
	// Unaccounted are neither traced nor excused. Lost counts cniscope's reported losses.
	Unaccounted []string           `json:",omitempty"`
	Lost        map[string]float64 `json:",omitempty"`
	// CountedAsLost counts untraced runs covered by reported losses.
	CountedAsLost int      `json:",omitempty"`
	False         []string `json:",omitempty"`
	// Checked counts call spans compared with the truth.
	Checked int
}

// truth is the knowledge of a round without cniscope.
type truth struct {
	runs  []run
	lives []life
	names map[string]string // of pods, by sandbox
	// unsaid means that the runtime may not have reported running sandboxes.
	unsaid bool
	wall   int64
}

// covered accounts for every run: it is traced if a call's span with the same key covers it.
func covered(t truth, spans []traced) account {
	a := account{Excused: map[string]int{}}
	by := map[key][]traced{}
	for _, s := range spans {
		if s.Operation {
			continue
		}
		k := key{s.Container, s.Command, s.Ifname}
		by[k] = append(by[k], s)
	}
	ends := ends(t.runs)
	for _, r := range t.runs {
		a.Runs++
		in := slices.ContainsFunc(by[key{r.Container, r.Command, r.Ifname}], func(s traced) bool { return s.covers(r, t.wall) })
		why := excuse(r, ends[[2]string{r.Container, r.Command}], t)
		switch {
		case in:
			a.Traced++
		case why != "":
			a.Excused[why]++
		default:
			a.Unaccounted = append(a.Unaccounted, fmt.Sprintf("%s %s %s of %s (%s), at %.3f for %.3f s", r.Name, r.Command, r.Ifname,
				r.Container[:min(12, len(r.Container))], t.names[r.Container], float64(r.Start)/1e9, float64(r.End-r.Start)/1e9))
		}
	}
	return a
}

func (s traced) covers(r run, wall int64) bool {
	return s.Start <= r.Start+wall+int64(slack) && s.End >= r.Start+wall-int64(slack)
}

func (s traced) holds(r run, wall int64) bool {
	middle := r.Start + (r.End-r.Start)/2 + wall
	return s.Start <= middle && middle <= s.End
}

func ends(runs []run) map[[2]string]int64 {
	last := map[[2]string]int64{}
	for _, r := range runs {
		k := [2]string{r.Container, r.Command}
		if before, is := last[k]; is && before == 0 {
			continue
		}
		if r.End == 0 {
			last[k] = 0
			continue
		}
		last[k] = max(last[k], r.End)
	}
	return last
}

func excuse(r run, end int64, t truth) string {
	if r.End == 0 {
		return "has not ended"
	}
	owed := unsettled
	if t.unsaid {
		owed = unsettledUnsaid
	}
	for _, l := range t.lives {
		if r.Start < l.Attached || (l.Ended > 0 && r.Start >= l.Ended) {
			continue
		}
		if l.Ended == 0 {
			return ""
		}
		if l.How == "stopped" && (end == 0 || end > l.Ended) {
			return "under way at a restart"
		}
		if l.How != "stopped" && (end == 0 || end > l.Ended-int64(owed)) {
			return "not settled when cniscope was killed"
		}
		return ""
	}
	return "while there was no cniscope"
}

func falsehoods(t truth, spans []traced) (found []string, checked int) {
	by := map[key][]run{}
	for _, r := range t.runs {
		k := key{r.Container, r.Command, r.Ifname}
		by[k] = append(by[k], r)
	}
	for _, s := range spans {
		if s.Operation || (s.Command != "ADD" && s.Command != "DEL") {
			continue
		}
		checked++
		its := slices.DeleteFunc(slices.Clone(by[key{s.Container, s.Command, s.Ifname}]), func(r run) bool { return !s.covers(r, t.wall) })
		if why := s.contradicts(its, t.names[s.Container], t.wall); why != "" {
			found = append(found, fmt.Sprintf("%s %s of %s (%s), trace %s: %s", s.Command, s.Ifname, s.Container, s.Pod, s.Trace, why))
		}
	}
	return found, checked
}

// contradicts returns a mismatch between a call's span and its runs; name is the pod's, if known.
func (s traced) contradicts(runs []run, name string, wall int64) string {
	if len(runs) == 0 {
		return "no plugin ran"
	}
	if name != "" && s.Pod != "" && s.Pod != name {
		return "the pod is " + name
	}
	partial := s.Attrs["cniscope.partial_reason"] != "" || s.Attrs["cniscope.unfinished"] == "true"
	var failed []string
	var agent time.Duration
	for _, r := range runs {
		if r.End > 0 && r.Exit != 0 && s.holds(r, wall) {
			failed = append(failed, r.Name)
		}
		if r.Name == protocol.Plugin {
			agent += time.Duration(r.End - r.Start)
		}
	}
	ms, _ := strconv.ParseFloat(s.Attrs["cniscope.time.agent_ms"], 64)
	said := time.Duration(ms * float64(time.Millisecond))
	most, _ := strconv.ParseFloat(s.Attrs["cniscope.biggest_part_ms"], 64)
	late := strings.Contains(name, protocol.Late) && s.Command == "ADD" && s.Ifname == "eth0" && !partial && complete(s, runs)
	switch {
	case most > float64(s.End-s.Start)/1e6+1:
		return fmt.Sprintf("its biggest part took %.1f ms, and it %.1f", most, float64(s.End-s.Start)/1e6)
	case len(failed) > 0 && !s.Failed && !partial:
		return "it says nothing of the failure of " + strings.Join(failed, ", ")
	case len(failed) == 0 && s.Failed && !partial && complete(s, runs):
		return "it says that it failed, and every plugin of its chain succeeded"
	case said > agent+slack:
		return fmt.Sprintf("it waited %s for its agent, and the plugin that calls it ran for %s", said, agent)
	case late && said < protocol.LateBy*9/10:
		return fmt.Sprintf("the agent took %s, and it says %s", protocol.LateBy, said)
	}
	return ""
}

// chainLength counts a pod's plugins: bridge, portmap, firewall and the agent's.
const chainLength = 4

func complete(s traced, runs []run) bool {
	want := chainLength
	if s.Ifname == "lo" {
		want = 1
	}
	for _, r := range runs {
		if r.End == 0 {
			return false
		}
	}
	return len(runs) >= want
}
