package probe

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// state asks the kernel how a server does.
func (k *agent) state() *event.Agent {
	s := &event.Agent{Process: processKey(k.key), PID: k.key.Pid, Name: k.name}
	dir := fmt.Sprintf("/proc/%d/", k.key.Pid)
	if stat, err := os.ReadFile(dir + "stat"); err == nil {
		s.CPU = cpuOf(string(stat))
	}
	if channel, err := os.ReadFile(dir + "wchan"); err == nil && string(channel) != "0" {
		s.Channel = string(channel)
	}
	return s
}

// cpuOf reads what a process consumed from /proc/PID/stat: fields 14 and 15 (proc(5)).
func cpuOf(stat string) int64 {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return (user + system) * (1e9 / ticksPerSecond)
}

// processOf is the key of a process, exact to a tick, as /proc has it; empty if it is
// gone.
func processOf(pid uint32) event.Process {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, start, ok := parseStat(string(stat))
	if !ok {
		return ""
	}
	return processKey(taskKey{Tgid: pid, Start: start, Pid: pid})
}

// keyOf takes a key apart again.
func keyOf(process event.Process, pid uint32) taskKey {
	number, start, _ := strings.Cut(string(process), "@")
	n, _ := strconv.ParseUint(number, 10, 32)
	at, _ := strconv.ParseUint(start, 10, 64)
	return taskKey{Tgid: uint32(n), Start: at, Pid: pid}
}

// alive tells whether a process is still there: under its number is one that began when it
// did, as far as /proc says that (to a tick).
func alive(key taskKey) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", key.Pid))
	if err != nil {
		return false
	}
	_, start, ok := parseStat(string(stat))
	return ok && began(key, start)
}

// began tells whether a process began when /proc says one did, which does so to a tick.
func began(key taskKey, start uint64) bool {
	const tick = 1e9 / ticksPerSecond
	return start <= key.Start+tick && key.Start < start+2*tick
}

// matches tells whether a program's name, of which the kernel keeps 15 bytes, is one of
// those that globs mean.
func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, `*?[\`) {
			pattern = pattern[:min(len(pattern), 15)]
		}
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}
