package webconfig

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// waitingMax bounds the requests that wait until their password is checked.
const waitingMax = 256

// turns admits one request at a time. Turns alternate between the request that has waited longest, so that each
// has one at last, and the oldest one of a source that is drawn at random: a scraper has a turn soon, however
// many requests strangers let wait.
type turns struct {
	mu      sync.Mutex
	waiting []*waiter // in the order in which they came
	taken   bool
	drawn   bool // the latest turn was drawn
}

type waiter struct {
	from   netip.Prefix
	admits chan bool
}

// take waits for a turn. It is false where a source has too many requests, or the client is gone.
func (t *turns) take(r *http.Request) bool {
	w := t.wait(source(r.RemoteAddr))
	select {
	case admitted := <-w.admits:
		return admitted
	case <-r.Context().Done():
		t.give(w)
		return false
	}
}

// wait makes one more request wait, in place of one of the largest crowd if they are too many.
func (t *turns) wait(from netip.Prefix) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{from, make(chan bool, 1)}
	t.waiting = append(t.waiting, w)
	if len(t.waiting) > waitingMax {
		t.leave(crowd(t.waiting), false)
	}
	t.next()
	return w
}

// give has a request wait no more, whose turn may have come.
func (t *turns) give(w *waiter) {
	t.mu.Lock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.leave(i, false)
	}
	t.mu.Unlock()
	if <-w.admits {
		t.pass()
	}
}

// pass gives the turn to another request.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	t.next()
}

// next begins a turn, if there is none and a request waits.
func (t *turns) next() {
	if t.taken || len(t.waiting) == 0 {
		return
	}
	t.taken, t.drawn = true, !t.drawn
	if t.drawn {
		t.leave(draw(t.waiting, rand.IntN), true)
	} else {
		t.leave(0, true)
	}
}

func (t *turns) leave(i int, admitted bool) {
	t.waiting[i].admits <- admitted
	t.waiting = slices.Delete(t.waiting, i, i+1)
}

// draw returns the oldest request of a source that random draws.
func draw(waiting []*waiter, random func(n int) int) int {
	var oldest []int
	for i, w := range waiting {
		if !slices.ContainsFunc(oldest, func(n int) bool { return waiting[n].from == w.from }) {
			oldest = append(oldest, i)
		}
	}
	return oldest[random(len(oldest))]
}

// crowd returns the newest request of the source that has most.
func crowd(waiting []*waiter) (last int) {
	count, most := map[netip.Prefix]int{}, 0
	for _, w := range waiting {
		count[w.from]++
		most = max(most, count[w.from])
	}
	for i, w := range waiting {
		if count[w.from] == most {
			last = i
		}
	}
	return last
}

// source is an address, or the network that one stranger has whole: loopback, or an IPv6 host's 64 bits.
func source(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	switch {
	case ip.Is4() && ip.IsLoopback():
		bits = 8
	case ip.Is4():
		bits = 32
	}
	network, _ := ip.Prefix(bits)
	return network
}
