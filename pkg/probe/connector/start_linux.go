package connector

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// start is valid until the next look.
type start struct {
	args, env []byte
	// execve(2)'s path; may be empty
	file string
	at   extent
}

// extent changes with each exec: the kernel randomizes it.
type extent struct{ args, argsEnd, env, envEnd uint64 }

// errNoMemory means an exited process, or a kernel thread.
var errNoMemory = errors.New("it has no memory of its own")

// startOf reads memory once: each file of /proc would wait while the process maps memory.
func (l *looker) startOf(pid uint32) (start, error) {
	stat, at, err := l.stat(pid)
	if err != nil {
		return start{}, err
	}
	if at.args == 0 || at.argsEnd < at.args || at.env < at.argsEnd || at.envEnd < at.env {
		if stat.Zombie() {
			return start{}, errNoMemory
		}
		return l.startByFiles(pid, at)
	}
	fd, err := unix.Open(file(pid, "mem"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if procfs.Gone(err) {
			return start{}, err
		}
		return l.startByFiles(pid, at)
	}
	defer unix.Close(fd)
	most := uint64(len(l.buffer))
	text := l.buffer[:min(most, at.envEnd-at.args+unix.PathMax)]
	n := 0
	for n < len(text) {
		got, err := unix.Pread(fd, text[n:], int64(at.args)+int64(n))
		if err != nil || got == 0 {
			break
		}
		n += got
	}
	if n == 0 {
		return start{}, errNoMemory
	}
	text = text[:n]
	part := func(from, to uint64) []byte {
		return text[min(from-at.args, uint64(n)):min(to-at.args, uint64(n))]
	}
	s := start{at: at, args: part(at.args, at.argsEnd), env: part(at.env, at.envEnd)}
	if rest := part(at.envEnd, at.envEnd+unix.PathMax); bytes.IndexByte(rest, 0) > 0 {
		s.file = string(rest[:bytes.IndexByte(rest, 0)])
	}
	return s, nil
}

// startByFiles is for processes whose memory may not be read by address.
func (l *looker) startByFiles(pid uint32, at extent) (s start, err error) {
	s.at = at
	args, err := l.read(file(pid, "cmdline"))
	if err != nil {
		return s, err
	}
	s.args = bytes.Clone(args)
	env, err := l.read(file(pid, "environ"))
	s.env = env
	return s, err
}

func (l *looker) stat(pid uint32) (s procfs.Stat, at extent, err error) {
	text, err := l.read(file(pid, "stat"))
	if err != nil {
		return s, at, err
	}
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return s, at, errNoMemory
	}
	s.Name = string(text[open+1 : end])
	fields := strings.Fields(string(text[end+1:])) // from the third on: proc(5)
	number := func(n int) uint64 {
		if n-3 >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseUint(fields[n-3], 10, 64)
		return v
	}
	if len(fields) > 0 {
		s.State = fields[0]
	}
	s.Parent, s.Session, s.Start = int(number(4)), int(number(6)), int64(number(22))*int64(procfs.Tick)
	return s, extent{number(48), number(49), number(50), number(51)}, nil
}
