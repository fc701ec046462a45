package nri

import (
	"cmp"
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
	switch ended, err := pidEnded(ctx, pid); {
	case errors.Is(err, unix.ESRCH):
		return true
	case err == nil:
		return ended
	}
	return orphaned(ctx, parent)
}

func pidEnded(ctx context.Context, pid int) (ended bool, err error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.EINVAL) { // PIDFD_NONBLOCK needs Linux 5.10, pidfd_open 5.3
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	err = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		ended = n > 0 && err == nil
		return ended
	})
	if ctx.Err() != nil {
		err = nil
	}
	return ended, err
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

func (p *Plugin) started(ctx context.Context, s *event.Sandbox, reported int64) {
	stat, is := firstOf(s)
	if is {
		p.watch(ctx, s)
	}
	if s.Phase == event.SandboxRunning {
		p.late(s, reported, stat, is)
	}
}

func (p *Plugin) late(s *event.Sandbox, reported int64, stat procfs.Stat, is bool) {
	before := p.take(s.ID, true)
	defer func() {
		if p.options.Plugins != nil && (before != nil && before.late || s.Late != 0) && !p.alone(before) {
			if now, _, ok := p.others(reported); ok {
				s.Plugins = before.end(now, aliveOther, 0)
				if before != nil && before.quiet != 0 {
					s.Unasked = reported - before.quiet
				}
			}
		}
	}()
	if !is {
		return
	}
	s.Mounted = mounted(int(s.PID), cmp.Or(int(p.runtimePID.Load()), 1))
	began := stat.Start - clock.Suspended()
	if took := reported - began; took > int64(event.LateReport) {
		s.Late = took
	}
}

// The runtime's mount keeps the inode and its time. Kata's process may be outside.
func mounted(pid, runtime int) int64 {
	theirs, err := procfs.Namespace(runtime, "net")
	if its, unknown := procfs.Namespace(pid, "net"); err != nil || unknown != nil || its == theirs {
		return 0
	}
	at, err := procfs.Opened(pid, "net")
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

func aliveOther(o Other) bool { return procfs.Alive(int(o.PID), o.Start) }

// firstOf rejects a PID of another namespace.
func firstOf(s *event.Sandbox) (procfs.Stat, bool) {
	stat, err := procfs.StatOf(int(s.PID))
	return stat, err == nil && s.PID != 0 && strings.Contains(procfs.Groups(int(s.PID)), s.ID)
}

func (p *Plugin) watch(ctx context.Context, s *event.Sandbox) {
	if p.options.Plugins == nil || p.ends[s.ID] != nil {
		return
	}
	if len(p.ends) >= awaitedMax {
		for _, cancel := range p.ends {
			cancel()
		}
		p.unlooked.Add(uint64(len(p.ends)))
		clear(p.ends)
	}
	ctx, cancel := context.WithCancel(ctx)
	p.ends[s.ID] = cancel
	go func() {
		if ended, _ := pidEnded(ctx, int(s.PID)); ended {
			p.awaitEnd(string(event.SandboxStopped) + s.ID)
		}
	}()
}

const leastLooks = 2 // 150 ms

func (p *Plugin) stopped(s *event.Sandbox, reported int64) {
	before := p.take(string(s.Phase)+s.ID, false)
	if cancel := p.ends[s.ID]; cancel != nil && s.Phase == event.SandboxRemoved {
		cancel()
		delete(p.ends, s.ID)
	}
	if before == nil || !before.late {
		return
	}
	since := reported
	for _, k := range before.plugins {
		since = min(since, k.since)
	}
	if reported-since <= int64(event.LateReport) {
		return
	}
	now, _, ok := p.others(reported)
	if !ok {
		return
	}
	all := before.end(now, aliveOther, leastLooks)
	if took := reported - before.since; before.since != 0 && took > int64(event.LateReport) {
		s.Late, s.Plugins = took, all
	}
}

// startOf returns a process's start on the clock of events, which stops while the node is suspended; 0 if unknown.
func startOf(pid int) int64 {
	stat, err := procfs.StatOf(pid)
	if err != nil || stat.Start == 0 {
		return 0
	}
	return max(1, stat.Start-clock.Suspended())
}
