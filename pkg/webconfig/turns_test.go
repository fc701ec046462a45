package webconfig

import (
	"fmt"
	"testing"
)

// A scraper has a turn soon among the maximum of guessing requests.
func TestAScraperAmongGuessers(t *testing.T) {
	one := func(int) string { return "10.0.0.1:1" }
	loopback := func(i int) string { return fmt.Sprintf("127.0.%d.%d:1", i%7, i) }
	for name, test := range map[string]struct {
		guesser func(i int) string
		scraper string
		waiting int
		most    int
	}{
		"one address, it has another":         {one, "10.0.0.2:1", waitingMax - 1, 60},
		"one address, it has the same":        {one, "10.0.0.1:2", 40, 40},
		"all of loopback, it has another":     {loopback, "10.0.0.2:1", waitingMax - 1, 60},
		"all of loopback, it has one of them": {loopback, "127.0.0.1:2", 40, 40},
		"a network of IPv6, it has another": {
			func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i) },
			"[2001:db8:0:1::1]:1", waitingMax - 1, 60,
		},
		"links of IPv6, it has an IPv4 address": {
			func(i int) string { return fmt.Sprintf("[fe80::%x%%eth%d]:1", i, i) },
			"10.0.0.2:1", waitingMax - 1, 60,
		},
		"IPv4 in IPv6, it has another": {
			func(i int) string { return fmt.Sprintf("[::ffff:127.0.0.%d]:1", i%250) },
			"10.0.0.2:1", waitingMax - 1, 60,
		},
		"forty addresses": {
			func(i int) string { return fmt.Sprintf("10.0.1.%d:1", i%40) },
			"10.0.0.2:1", 40, 80,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := &Turns{taken: true}
			for i := range test.waiting {
				q.wait(Source(test.guesser(i)))
			}
			scraper := q.wait(Source(test.scraper))
			for i := range test.most + 1 {
				q.Pass()
				if len(scraper.admits) > 0 {
					if !<-scraper.admits {
						t.Error("it was sent away")
					}
					return
				}
				q.wait(Source(test.guesser(i)))
			}
			t.Errorf("it still waits after %d others", test.most)
		})
	}
}

// A source with all places loses one to another source.
func TestACrowdMakesRoom(t *testing.T) {
	q := &Turns{taken: true}
	var last *waiter
	for range waitingMax {
		last = q.wait(Source("10.0.0.1:1"))
	}
	scraper := q.wait(Source("10.0.0.2:1"))
	if len(last.admits) != 1 || <-last.admits {
		t.Error("the newest of the crowd was not sent away")
	}
	if more := q.wait(Source("10.0.0.1:1")); len(more.admits) != 1 || <-more.admits {
		t.Error("one more of the crowd was not sent away")
	}
	if len(scraper.admits) != 0 || len(q.waiting) != waitingMax {
		t.Errorf("%d wait", len(q.waiting))
	}
}

// A disconnected client holds no turn.
func TestWhoGoesHoldsNoTurn(t *testing.T) {
	q := new(Turns)
	first, second, third := q.wait(Source("10.0.0.1:1")), q.wait(Source("10.0.0.2:1")), q.wait(Source("10.0.0.3:1"))
	q.give(second)
	q.give(first)
	if len(q.waiting) != 0 || !<-third.admits {
		t.Error("the turn is lost")
	}
	q.give(&waiter{admits: admitted(true)})
	if q.taken {
		t.Error("the turn is lost with the last")
	}
}

func admitted(is bool) chan bool {
	c := make(chan bool, 1)
	c <- is
	return c
}
