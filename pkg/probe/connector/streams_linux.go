package connector

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// A peer may connect later, or never (UDP, netlink, another network namespace). The delay doubles, up to asksMax
	// queries.
	askAgain = time.Second
	asksMax  = 4
	// askRest is a multiple of a query's duration: up to 2 % of a CPU, since the kernel lists all sockets.
	askRest = 50
	// streamsMax bounds the table, at 100 bytes per stream.
	streamsMax  = 4096
	lostStreams = "stream table full"
)

type streams struct {
	open map[uint64]*openStream // by inode
	max  int
	rest int64 // no queries until then
	// sockets beyond the bound, by PID
	left    map[uint32]uint64
	remotes func(wanted []uint64) (map[uint64]peer.Remote, error)
	clock   func() int64 // monotonic ns
}

type openStream struct {
	of        proctracker.Running
	ask, seen int64
	asks      int
	told      bool
}

func newStreams() streams {
	return streams{open: map[uint64]*openStream{}, max: streamsMax, left: map[uint32]uint64{}, remotes: peer.Remotes, clock: clock.Monotonic}
}

func (s *streams) look(now int64, running []proctracker.Running, t follower) {
	slices.SortFunc(running, func(a, b proctracker.Running) int { return cmp.Compare(a.PID, b.PID) })
	before := s.left
	s.left = map[uint32]uint64{}
	for _, p := range running {
		_ = procfs.Descriptors(int(p.PID), func(_ int, target string) bool {
			if inode := procfs.SocketIn(target); inode != 0 && !s.sees(now, inode, p) {
				s.left[p.PID]++
			}
			return true
		})
		if left := s.left[p.PID]; left > before[p.PID] {
			t.Lose(now, p.PID, lostStreams, left-before[p.PID])
		}
	}
	s.name(now, t)
	for inode, o := range s.open {
		if o.seen == now {
			continue
		}
		delete(s.open, inode)
		if o.told {
			t.Tell(now, o.of.PID, &event.Close{Process: o.of.Process, Socket: socketKey(inode)})
		}
	}
}

func (s *streams) sees(now int64, inode uint64, p proctracker.Running) bool {
	o := s.open[inode]
	if o == nil {
		if len(s.open) >= s.max {
			return false
		}
		o = &openStream{of: p, ask: now}
		s.open[inode] = o
	}
	o.seen = now
	return true
}

func (s *streams) unnamed(now int64) (wanted []uint64) {
	if now < s.rest {
		return nil
	}
	for inode, o := range s.open {
		if o.seen != now || o.told || o.asks >= asksMax || now < o.ask {
			continue
		}
		wanted = append(wanted, inode)
		o.ask = now + int64(askAgain)<<o.asks
		o.asks++
	}
	slices.Sort(wanted)
	return wanted
}

// name reports peers. A connection is older than its first sighting, so its reported duration is too short.
func (s *streams) name(now int64, t follower) {
	wanted := s.unnamed(now)
	if len(wanted) == 0 {
		return
	}
	began := s.clock()
	remotes, _ := s.remotes(wanted)
	s.rest = now + askRest*(s.clock()-began)
	for _, inode := range wanted {
		remote, known := remotes[inode]
		if !known {
			continue
		}
		o := s.open[inode]
		o.told = true
		address := text.Clean(remote.Address, text.Bound)
		if name, abstract := strings.CutPrefix(address, "@"); abstract {
			address = "@" + o.of.Known.Path(name)
		} else if remote.Network == "unix" {
			address = o.of.Known.Path(address)
		}
		t.Tell(now, o.of.PID, &event.Connect{
			Process: o.of.Process, Thread: o.of.PID, Start: now, Socket: socketKey(inode), Network: remote.Network, Address: address,
		})
	}
}

func socketKey(inode uint64) string { return "socket:" + strconv.FormatUint(inode, 10) }
