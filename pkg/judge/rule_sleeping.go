package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func sleeping(e *evidence) *finding {
	f := e.mostly(CauseSleep, CauseSleep.remedy(), Sleep)
	if f == nil {
		return nil
	}
	_, most := e.of(Sleep)
	if im := e.Failed; im != nil && im.Signal == "SIGKILL" && im.Run != nil && im.Run.Plugin == most.Name {
		f.Remedy = fmt.Sprintf("read plugin %s's log of that time (log_file or similar in its CNI configuration): it still "+
			"polled or retried when it was killed", im.Run.Plugin)
	}
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent != nil || s.image.Run == nil {
			continue
		}
		if c, n, slept := e.askedAgain(i); slept > f.time/2 {
			f.Says = fmt.Sprintf("plugin %s slept between its %d requests of %s", s.plugin, n, Peer(c))
			if s.in() != "" {
				f.Says += ", " + s.in()
			}
			f.Remedy = fmt.Sprintf("read the log of the program that listens at %s for that time: plugin %s may have "+
				"waited for another answer; if its requests succeeded, it limits their rate itself", c.Address, s.plugin)
			f.candidate = s.candidate
		} else if address := e.detecting(i, f.time/2); address != "" && s.image.Signal == "" {
			f.Remedy = fmt.Sprintf("read plugin %s's log: it may have waited for IPv6 duplicate address detection of %s; if it "+
				"did, set net.ipv6.conf.default.accept_dad = 0 in the pod's network namespace, unless IPAM may give two pods "+
				"the same address", s.plugin, address)
			f.candidate = s.candidate
		}
	}
	return f
}

// detecting returns an address whose detection may have been awaited.
func (e *evidence) detecting(at int, least time.Duration) string {
	im := e.spans[at].image
	for _, set := range model.Each[*model.Setting](im.Facts) {
		if strings.HasSuffix(set.Key, "/accept_dad") && set.Value == "0" {
			return ""
		}
	}
	for f, r := range model.Each[*model.Request](im.Facts) {
		if r.NetNS.Key == im.NetNS.Key && r.NetNS.Key != "" { // the node's
			continue
		}
		if r.Object == event.ObjectAddress && r.Verb == event.VerbAdd && strings.Contains(r.Address, ":") && !r.Failed() &&
			e.sleptBetween(at, f.When.End, f.When.End+int64(dadMost)) > least {
			return r.Address
		}
	}
	return ""
}

// askedAgain returns the last of n connections to one address with sleeps in most gaps.
func (e *evidence) askedAgain(at int) (last *model.Connection, n int, slept time.Duration) {
	asked := map[string][]*model.Fact{}
	for f, c := range model.Each[*model.Connection](e.spans[at].image.Facts) {
		if c.Exchange == nil && c.Error == "" {
			asked[c.Address] = append(asked[c.Address], f)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(asked)) {
		all, sum, pauses := asked[address], time.Duration(0), 0
		for i, f := range all[1:] {
			if own := e.sleptBetween(at, all[i].When.End, f.When.Start); own > 0 {
				sum += own
				pauses++
			}
		}
		if gaps := len(all) - 1; gaps > 1 && 2*pauses > gaps && sum > slept {
			last, n, slept = all[len(all)-1].What.(*model.Connection), len(all), sum
		}
	}
	return last, n, slept
}

func (e *evidence) sleptBetween(at int, start, end int64) (sum time.Duration) {
	for i := range e.waits {
		w := &e.waits[i]
		slack := max(int64(time.Millisecond), (w.end-w.start)/10) // a busy CPU delays one of two threads that sleep
		within := start <= w.start+slack && w.end <= end+slack
		if within && w.span == at && w.part.Kind == Sleep {
			sum += time.Duration(w.own)
		}
	}
	return sum
}
