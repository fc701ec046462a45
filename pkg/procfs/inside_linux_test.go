package procfs

import (
	"os"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Reading the namespaces of all processes takes milliseconds, so the noted one comes first. One that is gone, or lives
// elsewhere now, is searched for.
func TestTheNotedProcessOfANamespaceComesFirst(t *testing.T) {
	r, own := &Residents{}, harness.Must(OwnNamespace("net"))(t)
	found := func(inode uint32) (pids []int) {
		wanted := map[uint32]bool{inode: true}
		for pid, in := range Inside(r, wanted) {
			pids = append(pids, pid)
			delete(wanted, in)
		}
		return pids
	}
	r.Note(os.Getpid())
	harness.EqualSlices(t, found(own), []int{os.Getpid()}, "noted")
	const absent = 1 << 30
	r.note(own, absent)
	pids := found(own)
	if len(pids) != 1 || pids[0] == absent || r.noted(own) != pids[0] {
		t.Errorf("after the noted one left: %v, noted %d", pids, r.noted(own))
	}
	r.note(1, os.Getpid())
	harness.EqualSlices(t, found(1), nil, "of a namespace that is gone")
}
