//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of all threads of a process, including exited ones (clock_getcpuclockid(3)).
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

type memory struct{ anon, file, shmem int }

func memoryOf(pid int) (m memory, err error) {
	fields, err := status(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for name, value := range map[string]*int{"RssAnon": &m.anon, "RssFile": &m.file, "RssShmem": &m.shmem} {
		if *value, err = strconv.Atoi(strings.TrimSuffix(fields[name], " kB")); err != nil {
			return m, fmt.Errorf("%s of process %d: %w", name, pid, err)
		}
	}
	return m, nil
}

func status(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fields := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), ":"); found {
			if name = strings.TrimSpace(name); fields[name] == "" {
				fields[name] = strings.TrimSpace(value)
			}
		}
	}
	return fields, lines.Err()
}

func machine() string {
	cpu, _ := status("/proc/cpuinfo") // optional
	var u unix.Utsname
	_ = unix.Uname(&u)
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("%d × %s, Linux %s, %s/%s, %s; load %s\n", runtime.NumCPU(), cpu["model name"],
		unix.ByteSliceToString(u.Release[:]), runtime.GOOS, runtime.GOARCH, runtime.Version(), strings.TrimSpace(string(load)))
}
