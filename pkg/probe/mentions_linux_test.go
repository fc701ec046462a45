package probe

import (
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestWhatNamesASandbox(t *testing.T) {
	in := newInterior(true, newSymbols(nil))
	const one, two = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418", "0000000000001111dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e00841"
	in.begin(&event.Call{ContainerID: one, NetNS: "/run/netns/cni-786877ce", IfName: "eth0", Pod: event.Pod{Name: "db-6cqff"}}, 0)
	in.begin(&event.Call{ContainerID: two, NetNS: "/run/netns/cni-0bdc", IfName: "eth0", Pod: event.Pod{Name: "web-1"}}, 0)
	in.learn(one, &event.Enter{NetNS: event.Namespace{Key: "7", Label: "4026532000"}})
	in.learn(one, &event.Request{Name: "RTM_NEWLINK", Interface: event.Interface{Name: "eth0", Kind: "veth", Peer: "veth1a2b3c"}})
	in.learn(two, &event.Result{IPs: []string{"10.1.0.7/16", "fd00::7/64"}})
	for text, want := range map[string][]string{
		"--id=" + one:                          {one},
		one[:12]:                               {one},
		one[:8]:                                nil,
		"external_ids:pod=db-6cqff,ns=default": {one},
		"db-6cqff-568022":                      {one},
		"db-6cqff-abcde":                       nil, // another pod of that name
		"db-6cqff2":                            nil,
		"web-10":                               nil,
		"web-1":                                {two},
		"shop/web-1":                           {two},
		"/var/run/netns/cni-786877ce":          {one},
		"veth1a2b3c":                           {one},
		"eth0":                                 nil, // everybody has one
		"nw_dst=10.1.0.7,actions=drop":         {two},
		"10.1.0.70":                            nil,
		"10.1.0.7/32":                          {two},
		"[fd00::7]":                            {two},
		"db-6cqff and web-1":                   {one, two},
		"":                                     nil,
	} {
		slices.Sort(want)
		if got := in.mentions(nil, text); !slices.Equal(got, want) {
			t.Errorf("%q mentions %v, want %v", text, got, want)
		}
	}
	if got := in.mentions([]event.Namespace{{Key: "7", Label: "4026532000"}}); !slices.Equal(got, []string{one}) {
		t.Errorf("its namespace mentions %v", got)
	}
	in.end(one, 10)
	in.forgetSandboxes(10 + int64(leave) + 1)
	if got := in.mentions(nil, one, "web-1"); !slices.Equal(got, []string{two}) {
		t.Errorf("after its call: %v", got)
	}
}
