package nri

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// processEnded waits until a process exits; false if ctx ends first. 0 is the parent.
func processEnded(ctx context.Context, pid int) bool {
	parent := os.Getppid()
	if pid == 0 {
		pid = parent
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.EINVAL) { // PIDFD_NONBLOCK needs Linux 5.10, pidfd_open 5.3
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	switch {
	case errors.Is(err, unix.ESRCH):
		return true
	case err == nil:
		if ended, ok := pidfdEnded(ctx, fd); ok {
			return ended
		}
	}
	return orphaned(ctx, parent)
}

// pidfdEnded waits in the poller. !ok means unsupported.
func pidfdEnded(ctx context.Context, fd int) (ended, ok bool) {
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return false, false
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	err = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		ended = n > 0 && err == nil
		return ended
	})
	return ended, err == nil || ctx.Err() != nil
}

// orphaned polls for a new parent, because seccomp may forbid pidfds.
func orphaned(ctx context.Context, parent int) bool {
	tick := time.Tick(time.Second)
	for os.Getppid() == parent {
		select {
		case <-tick:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (p *Plugin) late(s *event.Sandbox, reported int64) {
	before := p.take(s.ID)
	defer func() {
		if p.options.Plugins != nil && (before != nil && before.late || s.Late != 0) {
			s.Plugins = before.end(p.others(), func(o Other) bool { return procfs.Alive(int(o.PID), o.Start) })
		}
	}()
	stat, err := procfs.StatOf(int(s.PID))
	if err != nil || s.PID == 0 || !strings.Contains(procfs.Groups(int(s.PID)), s.ID) { // of another PID namespace
		return
	}
	began := clock.Monotonic() - (clock.Boot() - stat.Start)
	if took := reported - began; took > int64(event.LateReport) {
		s.Late = took
	}
}
