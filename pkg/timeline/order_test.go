package timeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// In any order, late, twice or never: no process is followed for an ended operation.
func TestInAnyOrderNobodyIsFollowedForWhatIsOver(t *testing.T) {
	for seed := range uint64(300) {
		r, s, now := rand.New(rand.NewPCG(seed, 7)), tell(t), int64(0)
		for range 200 {
			now += int64(r.IntN(300)) - 20
			s.at(now, anything(r))
			for _, p := range s.followed() {
				if !slices.Contains(s.line.open, p.Op) {
					t.Fatalf("seed %d: a process of an operation that is over", seed)
				}
			}
		}
		for i := range 14 {
			s.exit(100_000, fmt.Sprint("p", i))
		}
		s.tick(200_000).end()
		if n := s.line.tree.Len() + len(s.line.open) + held(s.line.connections, "sockets") +
			held(s.line.connections, "pending"); n != 0 {
			t.Fatalf("seed %d: %d things are left", seed, n)
		}
	}
}

func anything(r *rand.Rand) event.Body {
	some := func(what string, n int) string { return fmt.Sprint(what, r.IntN(n)) }
	process, other, socket := event.Process(some("p", 14)), event.Process(some("p", 14)), some("s", 5)
	switch r.IntN(14) {
	case 0, 1:
		return &event.Fork{Process: process, Parent: other}
	case 2, 3:
		e := &event.Exec{
			Process: process, Parent: other, Root: r.IntN(2) == 0, InPath: r.IntN(2) == 0, Stdin: some("",
				3), Mentions: []string{some("c", 3)},
		}
		if r.IntN(3) > 0 {
			e.Call = &event.Call{Command: []string{"ADD", "DEL"}[r.IntN(2)], ContainerID: some("c", 3), IfName: "eth0"}
		}
		return e
	case 4:
		return &event.Exit{Process: process, Unseen: r.IntN(3) == 0}
	case 5, 6:
		return &event.Connect{Process: process, Socket: socket, Network: "unix", Address: "/run/a"}
	case 7, 8:
		return &event.Accept{
			Socket: socket, Agent: event.Actor{Process: other, PID: 3, Name: "agent"},
			Listens: r.IntN(3) == 0,
		}
	case 9:
		return &event.Close{Process: process, Socket: socket}
	case 10:
		return &event.Agent{
			Process: process, Over: r.IntN(2) == 0, CPU: int64(r.IntN(100)),
			State: event.AgentState(some("", 3)),
		}
	case 11, 12:
		x := &event.Exchange{
			Process: process, Socket: socket, Pending: r.IntN(2) == 0, Unasked: r.IntN(3) == 0,
			Start: int64(r.IntN(3)) * ms,
		}
		if r.IntN(2) == 0 {
			x.Peer = &event.Actor{Process: other, PID: 3, Name: "peer"}
		}
		return x
	}
	return &event.Tick{}
}
