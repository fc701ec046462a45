package webconfig

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
)

const waitingMax = 256

// Turns alternates between the longest waiting request and a random source's oldest, so strangers cannot delay a
// scraper.
type Turns struct {
	// Max bounds those who wait; 0 means 256.
	Max int

	mu      sync.Mutex
	waiting []*waiter      // in order of arrival
	count   map[string]int // of these, by source
	taken   bool
	drawn   bool // the latest turn was random
}

type waiter struct {
	from   string
	admits chan bool
}

// Take waits for a turn, which ends with Pass. It returns false if too many wait, or once done is closed.
func (t *Turns) Take(done <-chan struct{}, from string) bool {
	w := t.wait(from)
	select {
	case admitted := <-w.admits:
		return admitted
	case <-done:
		t.give(w)
		return false
	}
}

func (t *Turns) wait(from string) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{from, make(chan bool, 1)}
	t.waiting = append(t.waiting, w)
	if t.count == nil {
		t.count = map[string]int{}
	}
	if t.count[from]++; len(t.waiting) > cmp.Or(t.Max, waitingMax) {
		t.leave(t.crowd(), false)
	}
	t.next()
	return w
}

func (t *Turns) give(w *waiter) {
	t.mu.Lock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.leave(i, false)
	}
	t.mu.Unlock()
	if <-w.admits {
		t.Pass()
	}
}

// Pass ends the turn that was taken.
func (t *Turns) Pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	t.next()
}

func (t *Turns) next() {
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

func (t *Turns) leave(i int, admitted bool) {
	w := t.waiting[i]
	w.admits <- admitted
	if t.count[w.from]--; t.count[w.from] == 0 {
		delete(t.count, w.from)
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
}

func draw(waiting []*waiter, random func(n int) int) int {
	var oldest []int
	seen := map[string]bool{}
	for i, w := range waiting {
		if !seen[w.from] {
			seen[w.from] = true
			oldest = append(oldest, i)
		}
	}
	return oldest[random(len(oldest))]
}

// crowd returns the newest of the source with the most.
func (t *Turns) crowd() int {
	most := slices.Max(slices.Collect(maps.Values(t.count)))
	for i := len(t.waiting) - 1; i > 0; i-- {
		if t.count[t.waiting[i].from] == most {
			return i
		}
	}
	return 0
}

// Source is the address, or one host's network: loopback, or an IPv6 /64.
func Source(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	switch {
	case ip.Is4() && ip.IsLoopback():
		bits = 8
	case ip.Is4():
		bits = 32
	}
	network, _ := ip.Prefix(bits)
	return network.String()
}
