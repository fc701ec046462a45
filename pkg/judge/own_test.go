package judge

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Users of one namespace see no pods of others, nor work that may be theirs.
func TestOwn(t *testing.T) {
	const lock = "/var/lib/cni/networks/pods/lock"
	held := func(by event.Pod) *model.Operation {
		op := add(plugin("bridge", 0, 900, seen(plugin("host-local", 10, 800),
			waited(event.WaitLock, lock, from(20, 790), event.Actor{PID: 7, Name: "host-local", Parent: "bridge"}),
			func(im *model.Image) { im.Facts[0].What.(*model.Wait).Blame = &model.Blame{Pod: by} })))
		op.Pod = event.Pod{Namespace: "shop", Name: "web-0"}
		return op
	}
	for name, test := range map[string]struct {
		op      *model.Operation
		says    string // a part of it
		own     string // a part of it; empty if the same
		certain bool
	}{
		"another namespace's pod has the lock": {
			held(event.Pod{Namespace: "bank", Name: "vault-0"}), "host-local (pid 7, child of bridge) for pod bank/vault-0", "host-local (pid 7, child of bridge) for another pod", true,
		},
		"one of the same namespace": {held(event.Pod{Namespace: "shop", Name: "web-1"}), "for pod shop/web-1", "", true},
		"nobody known":              {held(event.Pod{}), "held by host-local", "", true},
	} {
		v := strict.Judge(test.op).Calls[test.op.Calls[0]].Verdict
		if v == nil {
			t.Fatal(name)
		}
		if !strings.Contains(v.Says, test.says) || (v.Own == "") != (test.own == "") || !strings.Contains(v.Own, test.own) || v.Certain != test.certain {
			t.Errorf("%s: %+v", name, v)
		}
		if strings.Contains(v.Own, "vault") {
			t.Errorf("%s: %s", name, v.Own)
		}
	}
}

// A name can be a prefix of another.
func TestOwnLeavesNoPieceOfAName(t *testing.T) {
	blamed := func(name string) *model.Wait {
		return &model.Wait{Blame: &model.Blame{Pod: event.Pod{Namespace: "bank", Name: name}}}
	}
	e := &evidence{namespace: "shop", waits: []wait{{what: blamed("db")}, {what: blamed("db-vault")}}}
	if own := e.own("held by x for pod bank/db-vault; held by y for pod bank/db"); own != "held by x for another pod; held by y for another pod" {
		t.Error(own)
	}
}

// Work for an unknown caller is uncertain, and hidden from other namespaces.
func TestOwnOfCandidates(t *testing.T) {
	op := add(seen(plugin("antrea", 0, 2300), dialled("unix", "/run/antrea.sock", from(10, 2280), served(nil, []*model.Image{
		seen(ran("secret-tool", 20, 2270), waited(event.WaitLock, "/var/lib/bank/lock", from(20, 2260))),
	}))))
	v := strict.Judge(op).Calls[op.Calls[0]].Verdict
	if v == nil {
		t.Fatal("there is no verdict")
	}
	told := v.Own
	if told == "" {
		told = v.Says
	}
	if strings.Contains(told, "bank") || strings.Contains(told, "secret") {
		t.Errorf("%+v", v)
	}
	if strings.Contains(v.Says, "bank") && v.Certain {
		t.Errorf("it is certain: %+v", v)
	}
}
