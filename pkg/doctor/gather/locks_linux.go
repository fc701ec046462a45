package gather

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// lookAgain is the time between two looks: what holds a lock in both, with the same
// waiters, is not just passing. Healthy waits are of milliseconds.
const lookAgain = 250 * time.Millisecond

// knownLocks are the files that CNI plugins and kube-proxy lock: iptables' own, and
// host-local's, one a network.
func knownLocks(dataDirs []string) (files []string, err error) {
	files = []string{"/run/xtables.lock"}
	for _, dir := range append([]string{"/var/lib/cni/networks"}, dataDirs...) {
		networks, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("host-local's locks: %w", err)
		}
		for _, n := range networks {
			files = append(files, filepath.Join(dir, n.Name(), "lock"))
		}
	}
	return files, nil
}

// heldLocks looks twice at who waits for whom on the known files.
func heldLocks(dataDirs []string) ([]fact.Lock, error) {
	began := time.Now()
	before, err := lockTable(dataDirs)
	if err != nil {
		return nil, err
	}
	waits := false
	for _, l := range before {
		waits = waits || len(l.waiters) > 0
	}
	if !waits {
		return nil, nil
	}
	time.Sleep(lookAgain)
	after, err := lockTable(dataDirs)
	if err != nil {
		return nil, err
	}
	var held []fact.Lock
	for file, now := range after {
		then, ok := before[file]
		if !ok || then.holder != now.holder {
			continue
		}
		l := fact.Lock{File: fact.Clean(file), PID: now.holder, Holder: process(now.holder), Since: time.Since(began)}
		for pid := range now.waiters {
			if then.waiters[pid] {
				l.Waiters, l.WaiterPIDs = append(l.Waiters, process(pid)), append(l.WaiterPIDs, pid)
			}
		}
		if len(l.Waiters) > 0 {
			held = append(held, l)
		}
	}
	return held, nil
}

// lockState is who holds a lock and who waits.
type lockState struct {
	holder  int
	waiters map[int]bool
}

// lockTable reads /proc/locks for the known files.
func lockTable(dataDirs []string) (map[string]lockState, error) {
	files, err := knownLocks(dataDirs)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil, fmt.Errorf("reading the locks: %w", err)
	}
	wanted := map[string]string{}
	for _, file := range files {
		var s unix.Stat_t
		if unix.Stat(file, &s) == nil {
			// As fs/locks.c writes it: device in hex, inode in decimal.
			wanted[fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)] = file
		}
	}
	return parseLocks(string(text), wanted), nil
}

// parseLocks reads lines such as
//
//	1: FLOCK  ADVISORY  WRITE 708 00:2f:1234 0 EOF
//	1: -> FLOCK  ADVISORY  WRITE 709 00:2f:1234 0 EOF
func parseLocks(text string, wanted map[string]string) map[string]lockState {
	found := map[string]lockState{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		waits := len(fields) > 1 && fields[1] == "->"
		if waits {
			fields = append(fields[:1], fields[2:]...)
		}
		if len(fields) < 6 || fields[1] != "FLOCK" && fields[1] != "POSIX" {
			continue
		}
		file, ok := wanted[fields[5]]
		pid, err := strconv.Atoi(fields[4])
		if !ok || err != nil {
			continue
		}
		state, known := found[file]
		if !known {
			state.waiters = map[int]bool{}
		}
		if waits {
			state.waiters[pid] = true
		} else {
			state.holder = pid
		}
		found[file] = state
	}
	return found
}

// process names a process.
func process(pid int) string {
	stat, err := procfs.StatOf(pid)
	if err != nil {
		return fact.Sayf("process %d, which has ended", pid) // an inherited descriptor keeps the lock
	}
	return fact.Sayf("process %d (%s)", pid, stat.Name)
}
