package probe

import (
	"os"
	"testing"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestNumbersOfAPIDNamespaceOfOurOwn(t *testing.T) {
	self := harness.Must(procfs.StatOf(os.Getpid()))(t)
	key := kernel.Key{Tgid: 1 << 21, Start: uint64(self.Start), Pid: uint32(os.Getpid())}
	now, lists := int64(1e9), 0
	var all []kernel.Key
	n := &numbers{now: func() int64 { return now }, list: func() ([]kernel.Key, error) { lists++; return all, nil }}
	if _, ok := n.Here(key.Tgid); ok || lists != 1 {
		t.Errorf("somebody is known by %d empty lists", lists)
	}
	all = []kernel.Key{key}
	if _, ok := n.Here(key.Tgid); ok || lists != 1 {
		t.Errorf("asked %d times at once", lists)
	}
	now += listEvery
	if pid, ok := n.Here(key.Tgid); !ok || pid != key.Pid || lists != 2 {
		t.Errorf("it is %d by the %d. list (%v)", pid, lists, ok)
	}
	now += listEvery
	if is, ok := n.Key(key.Pid); !ok || is != key || lists != 2 {
		t.Errorf("it is %+v by the %d. list (%v)", is, lists, ok)
	}
	// The PID was reused.
	old := key
	old.Start -= 1e9
	n.here[key.Pid] = old
	if is, ok := n.Key(key.Pid); !ok || is != key || lists != 3 {
		t.Errorf("it is %+v by the %d. list (%v)", is, lists, ok)
	}
}
