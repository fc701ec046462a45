package gather

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// lookAgain separates two looks. A lock with the same holder and waiters in both is stuck; healthy waits last
// milliseconds.
const lookAgain = 250 * time.Millisecond

// locksMax bounds /proc/locks in bytes; 20,000 locks take half a second.
const locksMax = 1 << 20

func knownLocks(dataDirs []string) (files []string, err error) {
	files = []string{"/run/xtables.lock"}
	for _, dir := range append([]string{"/var/lib/cni/networks"}, dataDirs...) {
		networks, err := list(view{sure: true}, dir, resultsMax)
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("cannot read host-local's locks: %w", err)
		}
		for _, n := range networks {
			files = append(files, filepath.Join(dir, n, "lock"))
		}
	}
	return files, nil
}

func heldLocks(dataDirs []string) ([]fact.Lock, error) {
	began := time.Now()
	before, err := lockTable(dataDirs)
	if err != nil {
		return nil, err
	}
	waits := func(l lockState) bool { return len(l.waiters) > 0 }
	if !slices.ContainsFunc(slices.Collect(maps.Values(before)), waits) {
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

type lockState struct {
	holder  int
	waiters map[int]bool
}

func lockTable(dataDirs []string) (map[string]lockState, error) {
	files, err := knownLocks(dataDirs)
	if err != nil {
		return nil, err
	}
	locks, err := procfs.Locks(locksMax)
	if err != nil {
		return nil, fmt.Errorf("cannot read the locks: %w", err)
	}
	wanted := map[string]string{}
	for _, file := range files {
		var s unix.Stat_t
		if unix.Stat(file, &s) == nil {
			wanted[fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)] = file
		}
	}
	return statesOf(locks, wanted), nil
}

func statesOf(locks []procfs.Lock, wanted map[string]string) map[string]lockState {
	found := map[string]lockState{}
	for _, l := range locks {
		file, ok := wanted[l.File]
		if !ok || l.Kind != "FLOCK" && l.Kind != "POSIX" {
			continue
		}
		state, known := found[file]
		if !known {
			state.waiters = map[int]bool{}
		}
		if l.Waits {
			state.waiters[l.PID] = true
		} else {
			state.holder = l.PID
		}
		found[file] = state
	}
	return found
}

func process(pid int) string {
	stat, err := procfs.StatOf(pid)
	if err != nil {
		return fact.Sayf("process %d, which has ended", pid) // a child inherited the lock
	}
	return fact.Sayf("process %d (%s)", pid, stat.Name)
}
