package decode

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

// The last sample of a frozen holder may come after the thaw: then no file freezes it any more.
func TestWhatFrozeAHolderIsKept(t *testing.T) {
	frozen, stopped := event.AgentFrozen, event.AgentStopped
	d := &Decoder{holders: map[uint32]*holder{1: {Actor: &event.Actor{PID: 7}}}}
	for i, sample := range []struct {
		state    event.AgentState
		by, want string
	}{{frozen, "cgroup.freeze", "cgroup.freeze"}, {frozen, "", "cgroup.freeze"}, {stopped, "", ""}, {"", "", ""}} {
		now := int64(i + 1)
		d.LookAtHolders(now, func(int) (event.AgentState, string) { return sample.state, sample.by })
		if h := d.holders[1].during(now); h.By != sample.want {
			t.Errorf("sample %d: %s by %q, want %q", i, h.State, h.By, sample.want)
		}
	}
}

// A wait that began before its process was followed has no file; that is not the root directory.
func TestALockWithoutAFileHasNoPath(t *testing.T) {
	d := &Decoder{}
	for name, want := range map[string]string{"": "", "lock\x00run\x00": "/run/lock"} {
		r := record{InsideCallEvent: &kernel.InsideCallEvent{Class: uint8(kernel.InsideClassCLASS_FLOCK)}, data: []byte(name)}
		bodies, _ := d.lock(r)
		harness.Equal(t, bodies[0].(*event.Wait).Path, want)
	}
}
