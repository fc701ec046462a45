package probe

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// comm is what the kernel calls a program.
func comm(b []byte) string { return text.Clean(unix.ByteSliceToString(b), 16) }

// holder says who has a lock, as far as that can still be asked. Its number is of the
// initial PID namespace; in another one it means somebody else.
func (in *interior) holder(number uint32) *event.Actor {
	h := &event.Actor{Process: in.byNumber[number]}
	if int32(number) <= 0 || !in.initial { // it may belong to an open file, not to a process
		return h
	}
	h.PID, h.Name = number, agents.Program(number)
	if s, err := procfs.StatOf(int(number)); err == nil && !s.Zombie() && s.Parent > 1 {
		h.Parent = agents.Program(uint32(s.Parent))
	}
	return h
}
