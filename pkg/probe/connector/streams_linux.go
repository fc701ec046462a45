package connector

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/notified"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// askEvery is how often it is asked where a socket leads to, of which that was not known before: it may not be
	// connected yet.
	askEvery = time.Second
	// streamsMax bounds how many sockets are known at once, at some 100 bytes each.
	streamsMax = 4096
)

// streams are the sockets that processes have open which run long, by inode.
type streams map[uint64]*openStream

type openStream struct {
	of          notified.Running // who has it; the first of them, where several have
	asked, seen int64
	told        bool
}

// look tells of connections that are there, and of those that are gone.
func (s streams) look(now int64, running []notified.Running, t *notified.Tracker) {
	slices.SortFunc(running, func(a, b notified.Running) int { return cmp.Compare(a.PID, b.PID) }) // parents mostly come first
	var unknown []uint64
	for _, p := range running {
		_ = procfs.Descriptors(int(p.PID), func(_ int, target string) bool {
			inode := socketIn(target)
			if inode == 0 {
				return true
			}
			if s[inode] == nil {
				s[inode] = &openStream{of: p}
			}
			o := s[inode]
			o.seen = now
			if !o.told && (o.asked == 0 || now-o.asked >= int64(askEvery)) {
				o.asked = now
				unknown = append(unknown, inode)
			}
			return len(s) < streamsMax
		})
	}
	s.name(now, unknown, t)
	for inode, o := range s {
		if o.seen == now {
			continue
		}
		delete(s, inode)
		if o.told {
			t.Tell(now, o.of.PID, &event.Close{Process: o.of.Process, Socket: socketKey(inode)})
		}
	}
}

// name tells where sockets lead to. What is seen now has been there before: a connection is told too short.
func (s streams) name(now int64, unknown []uint64, t *notified.Tracker) {
	if len(unknown) == 0 {
		return
	}
	remotes, _ := peer.Remotes() // what is missing is asked for again
	for _, inode := range unknown {
		remote, known := remotes[inode]
		if !known {
			continue
		}
		o := s[inode]
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

// socketIn is the inode in what a descriptor's link leads to, "socket:[1234]"; 0 if it is something else.
func socketIn(target string) (inode uint64) {
	if number, is := strings.CutPrefix(target, "socket:["); is {
		inode, _ = strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	}
	return inode
}
