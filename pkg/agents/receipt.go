package agents

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// reads are when something was last read from the streams of agents.
type reads map[stream]read

type read struct {
	at    int64
	spoke bool // the other end speaks there by itself
}

const (
	// readsMax bounds reads: an agent has some dozens of streams.
	readsMax = 1024
	// soon is how soon after it has read something an agent acknowledges it: within the goroutine
	// that reads, or one that it wakes (HTTP/2's WINDOW_UPDATE, RFC 9113, 6.9).
	soon = 5 * time.Millisecond
)

// receipt reports whether what was written at an instant may only have acknowledged what was read just before, on a stream on
// which the other end speaks by itself, so that no answer was waited for: as on HTTP/2, where many wait on one
// stream for what may never come.
func (rs reads) receipt(x *event.Exchange, at int64) bool {
	last, known := rs[stream{x.Process, x.Socket}]
	return known && last.spoke && !x.Unasked && at >= last.at && at-last.at <= int64(soon)
}

// add takes what was read.
func (rs reads) add(now int64, x *event.Exchange) {
	key := stream{x.Process, x.Socket}
	if _, known := rs[key]; !known && len(rs) >= readsMax {
		rs.forget()
	}
	rs[key] = read{now, rs[key].spoke || x.Unasked}
}

// forget forgets the quarter of the streams that were not read from for longest: one at a time would cost a look
// at all of them each time.
func (rs reads) forget() {
	all := slices.SortedFunc(maps.Keys(rs), func(a, b stream) int {
		return cmp.Or(cmp.Compare(rs[a].at, rs[b].at), cmp.Compare(a.socket, b.socket), cmp.Compare(a.by, b.by))
	})
	for _, s := range all[:len(all)/4] {
		delete(rs, s)
	}
}
