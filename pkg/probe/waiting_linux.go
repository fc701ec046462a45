package probe

import (
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

func (r *reader) Waiting(before int64) (waiting []kernel.InsideStream) {
	kernel.Each(r.probe.kernel.Inside.Streams, func(_ *uint64, s *kernel.InsideStream) {
		asked, since := s.Wrote, s.Wrote
		if asked == 0 {
			asked, since = s.Last, s.Read
		}
		if asked == 0 || int64(since) > before || s.Serves != 0 {
			return
		}
		// earlier requests may have been answered
		if p, ok := r.probe.kernel.Process(s.Self.Tgid); ok && p.Self == kernel.Key(s.Self) && asked >= p.Since {
			waiting = append(waiting, *s)
		}
	})
	return waiting
}

func (r *reader) Asked(inode uint64) { r.role(inode, kernel.InsideRoleROLE_SERVES) }

func (r *reader) Asks(inode uint64) { r.role(inode, kernel.InsideRoleROLE_ASKS) }

func (r *reader) role(inode uint64, role kernel.InsideRole) {
	if roles := r.probe.kernel.Inside.Roles; roles != nil {
		_ = roles.Put(inode, uint32(role))
	}
}
