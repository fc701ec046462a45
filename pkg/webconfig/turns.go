package webconfig

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

const waitingMax = 256

// turns alternates between the longest waiting request and a random source's oldest, so strangers cannot delay a
// scraper.
type turns struct {
	mu      sync.Mutex
	waiting []*waiter // in order of arrival
	taken   bool
	drawn   bool // the latest turn was random
}

type waiter struct {
	from   netip.Prefix
	admits chan bool
}

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

func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	t.next()
}

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

func draw(waiting []*waiter, random func(n int) int) int {
	var oldest []int
	for i, w := range waiting {
		if !slices.ContainsFunc(oldest, func(n int) bool { return waiting[n].from == w.from }) {
			oldest = append(oldest, i)
		}
	}
	return oldest[random(len(oldest))]
}

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

// source is the address, or one host's network: loopback, or an IPv6 /64.
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
