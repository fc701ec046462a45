//go:build linux

package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
)

func runPrograms(t *testing.T, perSecond int) (end func() string) {
	t.Helper()
	const workers = 4
	program := harness.Nothing(t)
	var ran atomic.Int64
	var group sync.WaitGroup
	stop, began := make(chan struct{}), time.Now()
	for range workers {
		group.Go(func() {
			for next := time.Now(); ; next = next.Add(workers * time.Second / time.Duration(perSecond)) {
				select {
				case <-stop:
					return
				case <-time.After(time.Until(next)):
				}
				pid, err := syscall.ForkExec(program, []string{program}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = syscall.Wait4(pid, nil, 0, nil)
				ran.Add(1)
			}
		})
	}
	return func() string {
		close(stop)
		group.Wait()
		took := time.Since(began)
		return fmt.Sprintf("%d programs in %s, %.0f a second", ran.Load(), took.Round(time.Millisecond), float64(ran.Load())/took.Seconds())
	}
}

// tables counts the entries of a process's hash tables, by their names.
func tables(t *testing.T, pid int) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, id := range scope.BPFOf(t, pid).Maps {
		count(t, id, counts)
	}
	return counts
}

func count(t *testing.T, id uint32, counts map[string]int) {
	t.Helper()
	m := harness.Must(ebpf.NewMapFromID(ebpf.MapID(id)))(t)
	defer m.Close()
	if m.Type() != ebpf.Hash && m.Type() != ebpf.LRUHash {
		return
	}
	info := harness.Must(m.Info())(t)
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	counts[info.Name] = 0
	for entries := m.Iterate(); entries.Next(&key, &value); {
		counts[info.Name]++
	}
}
