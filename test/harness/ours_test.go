package harness

import (
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestOnlyATestsOwnPluginsAndWhatTheyStartAreOurs(t *testing.T) {
	container := Container()
	if container == Container() {
		t.Error("two tests have the same container")
	}
	o := NewOurs(container)
	call := func(container string) *event.Call { return &event.Call{ContainerID: container} }
	var got []bool
	for _, body := range []event.Body{
		&event.Tick{},
		&event.Exec{Process: "ours", Root: true, Call: call(container)},
		&event.Exec{Process: "theirs", Root: true, Call: call("c1")},
		&event.Exec{Process: "nobody's", Root: true},
		&event.Fork{Process: "child", Parent: "ours"},
		&event.Fork{Process: "their child", Parent: "theirs"},
		&event.Exec{Process: "delegate", Parent: "child", Call: call(container)},
		&event.Exec{Process: "claims it", Parent: "theirs", Call: call(container)},
		&event.Exit{Process: "theirs"},
		&event.Exit{Process: "child"},
		&event.Lost{Process: "theirs"},
		&event.Lost{},
	} {
		got = append(got, o.Has(event.Event{Body: body}))
	}
	if want := []bool{true, true, false, false, true, false, true, false, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if o.Add("agent"); !o.Has(event.Event{Body: &event.Exit{Process: "agent"}}) {
		t.Error("its agent is not the test's")
	}
}
