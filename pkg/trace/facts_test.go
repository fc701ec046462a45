package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func between(start, end int64) model.Interval { return model.Interval{Start: start, End: end} }

func asked(name string, when model.Interval, change ...func(*model.Request)) *model.Fact {
	r := &model.Request{Request: &event.Request{
		Protocol: "rtnetlink", Name: name,
		NetNS: event.Namespace{Key: "1", Label: "4026531840"},
	}}
	for _, f := range change {
		f(r)
	}
	return &model.Fact{When: when, What: r}
}

func named(name string) func(*model.Request) { return func(r *model.Request) { r.On = name } }

func refused(errno, message string) func(*model.Request) {
	return func(r *model.Request) { r.Answer = &event.Answer{Error: errno, Message: message} }
}

// busy is a bridge ADD from 10 to 40 with many facts; those of 5 or more have a span.
func busy(change ...func(*model.Operation)) *model.Operation {
	return sandbox(append([]func(*model.Operation){func(op *model.Operation) {
		op.MinSpan = 5
		op.Calls[0].Seen, op.Calls[0].Concurrent = true, 3
		op.Calls[0].Cut = map[string]uint64{"requests": 2, "bytes": 9}
		run := bridge(op)
		run.Activity = model.Activity{Switches: 2, Tallies: [model.FactKinds]model.Tally{
			model.FactLock: {Count: 2, Time: 7}, model.FactQuery: {Count: 4}, model.FactChange: {Count: 5, Time: 12},
		}}
		run.Facts = []*model.Fact{
			{When: between(11, 17), What: &model.Wait{
				Kind: event.WaitLock, Path: "/run/l", Tries: 2,
				Holder: &event.Actor{PID: 812, Name: "kube-proxy"}, HolderAge: 2e6,
			}},
			{When: between(17, 22), What: &model.Wait{Kind: event.WaitMutex, Name: "rtnl"}},
			{When: between(22, 30), What: &model.Wait{Kind: event.WaitCall, Name: "clone"}}, // too short
			{When: between(30, 40), What: &model.Wait{Kind: event.WaitSleep, Name: "nanosleep"}},
			asked("RTM_NEWLINK", between(12, 13), named("eth0")),
			asked("RTM_NEWLINK", between(13, 19), named("cni0")),
			asked("RTM_NEWADDR", between(20, 21), named("eth0"), func(r *model.Request) { r.Address = "10.22.0.5/16" },
				refused("EEXIST", "in use")),
			asked("RTM_GETRULE", between(21, 29), func(r *model.Request) { r.Verb = event.VerbQuery }),
			asked("NFT_MSG_NEWRULE", between(22, 22), func(r *model.Request) { r.Table, r.Count = "nat", 9 }),
			{When: between(23, 23), What: &model.Setting{Setting: &event.Setting{Key: "net/ipv4/ip_forward", Value: "1"}}},
			{When: between(23, 28), What: &model.Setting{Setting: &event.Setting{
				Key:   "net/ipv6/conf/eth0/accept_dad",
				Value: "0",
			}}},
			{When: between(24, 30), What: &model.Detection{Address: "fd00::5", On: "eth0", State: event.AddressReady}},
			{When: between(24, 28), What: &model.Detection{Address: "fd00::6", On: "eth0", State: event.AddressReady}},
			{When: between(31, 39), What: &model.Connection{
				Network: "tcp", Address: "[::1]:99", Tries: 2,
				Agent: &event.Actor{PID: 44, Name: "agentd"}, Answered: true,
			}},
		}
		run.Run.Configuration = &event.Configuration{CNIVersion: "1.0.0", Network: "pods"}
		run.Run.Result = &event.Result{IPs: []string{"10.22.0.5/16"}}
		iptables(op).Facts = []*model.Fact{asked("NFT_MSG_NEWRULE", between(22, 22))}
	}}, change...)...)
}

func drawn(spans []*tracepb.Span, keys ...string) string {
	var b strings.Builder
	values := func(s *tracepb.Span) (out string) {
		for _, key := range keys {
			if v := said(s, key); v != nil {
				out += " " + strings.Trim(strings.TrimPrefix(strings.ReplaceAll(v.String(), " ", ""), "string_value:"), `"`)
			}
		}
		return out
	}
	var draw func(parent []byte, depth int)
	draw = func(parent []byte, depth int) {
		for _, s := range spans {
			if !slices.Equal(s.ParentSpanId, parent) {
				continue
			}
			fmt.Fprintf(&b, "%s%s %d-%d%s\n", strings.Repeat("  ", depth), s.Name, s.StartTimeUnixNano-1000,
				s.EndTimeUnixNano-1000, values(s))
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s* %s %d%s\n", strings.Repeat("  ", depth+1), e.Name, e.TimeUnixNano-1000,
					values(&tracepb.Span{Attributes: e.Attributes}))
			}
			draw(s.SpanId, depth+1)
		}
	}
	draw(nil, 0)
	return b.String()
}

func TestWhatHappensInsideOfAPlugin(t *testing.T) {
	got := drawn(build(busy()), "network.interface.name", "cniscope.address", "cniscope.errno", "cniscope.lock.path",
		"cniscope.lock.name",
		"cniscope.lock.holder_name", "cniscope.agent", "cniscope.sysctl.key", "cniscope.rule.table",
		"cniscope.request.count", "cniscope.request.message")
	want := `pod network setup 10-40
  CNI ADD 10-40
    bridge ADD 10-40
      * netlink NFT_MSG_NEWRULE 22 nat int_value:9
      * write sysctl 23 net/ipv4/ip_forward
      configure interface 12-21 eth0
        * netlink RTM_NEWLINK 13 eth0
        * netlink RTM_NEWADDR 21 eth0 10.22.0.5/16 EEXIST inuse
      configure interface 13-19 cni0
        netlink RTM_NEWLINK 13-19 cni0
      netlink RTM_GETRULE 21-29
      write sysctl 23-28 net/ipv6/conf/eth0/accept_dad
      wait for lock 11-17 /run/l kube-proxy
      wait for lock 17-22 rtnl
      sleep 30-40
      wait for IPv6 DAD 24-30 eth0 fd00::5
      call agent 31-39 agentd
      iptables 20-30
        * netlink NFT_MSG_NEWRULE 22
`
	harness.Equal(t, got, want)
}

func TestWhatIsSlowInsideIsMarked(t *testing.T) {
	op := busy()
	spans := NewBuilder(IDs{Seed: "boot"}, nil, "v1").
		Build(op, judge.Options{
			Thresholds: judge.Thresholds{Agent: 7, Lock: 5},
			Sampling:   judge.Sampling{All: true},
		}.Judge(op)).Read().ScopeSpans[0].Spans
	got := ""
	for _, s := range spans {
		if said(s, "cniscope.slow") != nil {
			got += fmt.Sprint(s.Name, " ", s.Events[len(s.Events)-1].Name, "; ")
		}
		for _, key := range []string{"cniscope.slow_agents", "cniscope.slow_locks"} {
			if v := said(s, key); v != nil {
				got += fmt.Sprint(s.Name, " ", key, " ", v.GetIntValue(), "; ")
			}
		}
	}
	harness.Equal(t, got, "CNI ADD cniscope.slow_agents 1; CNI ADD cniscope.slow_locks 1; wait for lock slow; call agent slow; ")
}

func TestWhatIsSaidOfTheInside(t *testing.T) {
	spans := build(busy(func(op *model.Operation) {
		op.Calls[0].First = &model.FirstConnection{At: 2e6 + 40, Remote: "10.22.0.1:53"}
	}))
	says(t, spans, []attributed{
		{"CNI ADD", "cniscope.concurrent_calls", "int_value:3"},
		{"CNI ADD", "cniscope.system_calls_seen", "bool_value:true"},
		{"CNI ADD", "cniscope.cut.requests", "int_value:2"},
		{"CNI ADD", "cniscope.cut.bytes", "int_value:9"},
		{"CNI ADD", "cniscope.first_connection_ms", "double_value:2"},
		{"CNI ADD", "cniscope.biggest_part", `string_value:"commandiptables"`},
		{"CNI ADD", "cniscope.time.locks_ms", "double_value:7e-06"},
		{"bridge ADD", "cniscope.locks", "int_value:2"},
		{"bridge ADD", "cniscope.queries", "int_value:4"},
		{"bridge ADD", "cniscope.requests", "int_value:9"},
		{"bridge ADD", "cni.version", `string_value:"1.0.0"`},
		{"configure interface", "cniscope.kind", `string_value:"interface"`},
		{"configure interface", "cni.plugin", `string_value:"bridge"`},
		{"configure interface", "cniscope.changes", "int_value:2"},
		{"wait for lock", "cniscope.kind", `string_value:"lock"`},
		{"wait for lock", "cniscope.lock.tries", "int_value:2"},
		{"wait for lock", "cniscope.lock.holder_pid", "int_value:812"},
		{"wait for lock", "cniscope.lock.holder_age_ms", "double_value:2"},
		{"wait for lock", "cniscope.lock.holder_age_exact", "bool_value:false"},
		{"call agent", "cniscope.tries", "int_value:2"},
		{"call agent", "server.address", `string_value:"::1"`},
		{"call agent", "server.port", "int_value:99"},
		{"call agent", "network.transport", `string_value:"tcp"`},
		{"call agent", "cniscope.agent_pid", "int_value:44"},
		{"call agent", "cni.ifname", `string_value:"eth0"`},
	})
	harness.Equal(t, find(spans, "call agent").Kind, tracepb.Span_SPAN_KIND_CLIENT, "call agent is of kind")
	if e := find(spans, "CNI ADD").Events; len(e) != 1 || e[0].Name != "first connection" {
		t.Errorf("events of the call: %v", e)
	}
}

func TestRefusedChangesAreErrorsOfPluginsThatFailed(t *testing.T) {
	for code, want := range []int{0, 1} {
		op := busy(func(op *model.Operation) {
			bridge(op).Code = uint32(code)
			bridge(op).Facts[5].What.(*model.Request).Answer = &event.Answer{Error: "EBUSY", Message: "Device is in use"}
		})
		s := find(build(op), "netlink RTM_NEWLINK")
		if got := int(s.GetStatus().GetCode()) / 2; got != want || code == 1 &&
			s.Status.Message != "EBUSY: Device is in use" {
			t.Errorf("plugin exits %d: status %v", code, s.Status)
		}
		harness.Equal(t, said(s, "cniscope.errno").GetStringValue(), "EBUSY", "cniscope.errno")
		harness.Equal(t, said(s, "error.type").GetStringValue(), []string{"", "EBUSY"}[want], "error.type")
	}
}

func TestTheSameOperationGivesTheSameBytes(t *testing.T) {
	node := Node{Name: "n1", Attributes: map[string]string{"b": "1", "a": "2"}}
	bytes := func() []byte {
		op := busy()
		b := NewBuilder(IDs{Seed: "boot"}, node.Resource(), "v1")
		return harness.Must(proto.MarshalOptions{Deterministic: true}.Marshal(b.Build(op, options.Judge(op)).Spans))(t)
	}
	first := bytes()
	for range 20 {
		if !slices.Equal(first, bytes()) {
			t.Fatal("two builds differ")
		}
	}
	distinct(t, build(busy()))
}

func distinct(t *testing.T, spans []*tracepb.Span) {
	t.Helper()
	ids := map[string]bool{}
	for _, s := range spans {
		if ids[string(s.SpanId)] {
			t.Errorf("%s has the id of another span", s.Name)
		}
		ids[string(s.SpanId)] = true
	}
}

func TestEveryKindOfFactHasADrawer(t *testing.T) {
	for kind, d := range drawers() {
		if d.draw == nil || d.turn == 0 {
			t.Errorf("nobody draws facts of the kind %d", kind)
		}
	}
}

func TestWhatARequestIsCalled(t *testing.T) {
	for want, r := range map[string]event.Request{
		"netlink RTM_NEWLINK":               {Protocol: "rtnetlink", Name: "RTM_NEWLINK"},
		"ioctl SIOCSIFMTU":                  {Protocol: "ioctl", Name: "SIOCSIFMTU"},
		"iptables IPT_SO_SET_REPLACE":       {Protocol: "iptables", Name: "IPT_SO_SET_REPLACE"},
		"load program cil_from (sched_cls)": {Protocol: "bpf", Object: event.ObjectProgram, Program: "cil_from", Type: "sched_cls"},
		"create map cil_calls (hash)":       {Protocol: "bpf", Object: event.ObjectMap, Program: "cil_calls", Type: "hash"},
		"pin cil_from":                      {Protocol: "bpf", Object: event.ObjectPin, Program: "cil_from"},
		"attach program cil_from":           {Protocol: "bpf", Object: event.ObjectLink, Verb: event.VerbAdd, Program: "cil_from"},
		"replace program":                   {Protocol: "bpf", Object: event.ObjectLink, Verb: event.VerbChange},
		"detach program (tcx)":              {Protocol: "bpf", Object: event.ObjectLink, Verb: event.VerbDelete, Type: "tcx"},
	} {
		s := build(busy(func(op *model.Operation) {
			bridge(op).Children = nil
			bridge(op).Facts = []*model.Fact{{When: between(12, 30), What: &model.Request{Request: &r}}}
		}))
		harness.Equal(t, s[len(s)-1].Name, want)
	}
}

// Requests for one interface are a group, by its name or index, namespace and the evidence whose they are.
func TestWhichRequestsAreAGroup(t *testing.T) {
	certain, candidate := &model.Attribution{Evidence: model.Certain}, &model.Attribution{Evidence: model.Candidate}
	on := func(start int64, name string, index uint32, ns string, by *model.Attribution) *model.Fact {
		f := asked("RTM_NEWADDR", between(start, start), named(name), func(r *model.Request) { r.Interface.Index, r.NetNS.Key = index, ns })
		f.Attribution = by
		return f
	}
	got := drawn(build(busy(func(op *model.Operation) {
		bridge(op).Children = nil
		bridge(op).Facts = []*model.Fact{
			on(12, "eth0", 3, "1", nil), on(18, "eth0", 4, "1", nil), on(13, "eth0", 3, "2", nil), on(19, "eth0", 3, "2", nil),
			on(14, "", 5, "1", nil), on(20, "", 5, "1", nil), on(15, "eth0", 3, "1", certain), on(21, "eth0", 3, "1", certain),
			on(16, "eth0", 3, "1", candidate), on(22, "eth0", 3, "1", candidate), on(17, "", 0, "1", nil), on(23, "", 0, "1", nil),
		}
	})), "cniscope.attribution")
	harness.Equal(t, got, `pod network setup 10-40
  CNI ADD 10-40
    bridge ADD 10-40
      * netlink RTM_NEWADDR 17
      * netlink RTM_NEWADDR 23
      configure interface 12-18
        * netlink RTM_NEWADDR 12
        * netlink RTM_NEWADDR 18
      configure interface 13-19
        * netlink RTM_NEWADDR 13
        * netlink RTM_NEWADDR 19
      configure interface 14-20
        * netlink RTM_NEWADDR 14
        * netlink RTM_NEWADDR 20
      configure interface 15-21 certain
        * netlink RTM_NEWADDR 15 certain
        * netlink RTM_NEWADDR 21 certain
      configure interface 16-22 candidate
        * netlink RTM_NEWADDR 16 candidate
        * netlink RTM_NEWADDR 22 candidate
`)
}

// A duplicate address is an error of a plugin that failed.
func TestADuplicateAddress(t *testing.T) {
	for state, want := range map[event.AddressState]string{event.AddressDuplicate: "fd00::5 is a duplicate", event.AddressReady: ""} {
		s := find(build(busy(func(op *model.Operation) {
			bridge(op).Code = 1
			bridge(op).Facts = []*model.Fact{{When: between(24, 30), What: &model.Detection{Address: "fd00::5", On: "eth0", State: state}}}
		})), "wait for IPv6 DAD")
		harness.Equal(t, s.GetStatus().GetMessage(), want)
	}
}

func TestMounts(t *testing.T) {
	got := drawn(build(busy(func(op *model.Operation) {
		bridge(op).Children = nil
		bridge(op).Facts = []*model.Fact{
			{When: between(12, 30), What: &model.Mount{Mount: &event.Mount{
				Name: "mount", Source: "/csi/data", Target: "/run/a",
				Flags: []string{"bind", "ro"},
			}}},
			{When: between(31, 31), What: &model.Mount{Mount: &event.Mount{Name: "umount2", Target: "/run/b", Error: "EBUSY"}}},
		}
	})), "cniscope.kind", "cniscope.mount.target", "cniscope.mount.source", "cniscope.errno")
	harness.Says(t, got, "      mount 12-30 mount /run/a /csi/data\n", "      unmount 31-31 mount /run/b EBUSY\n")
}

func TestACommandNamesTheFunctionThatStartedIt(t *testing.T) {
	im := &model.Image{Program: model.Program{Stack: []event.Frame{
		{Function: "example.com/agent/util.Run", File: "example.com/agent/util/run.go", Line: 9},
		{Function: "example.com/agent.(*server).cmdAdd.func1", File: "example.com/agent/server.go", Line: 40},
	}}}
	got := map[string]string{}
	for _, kv := range aboutProcess(nil, im) {
		got[string(kv.Key)] = kv.Value.String()
	}
	for key, want := range map[string]string{
		"code.function.name": "example.com/agent/util.Run", "code.file.path": "example.com/agent/util/run.go", "code.line.number": "9",
		"cniscope.callers": `["Run (run.go:9)","cmdAdd (server.go:40)"]`,
	} {
		harness.Equal(t, got[key], want, key)
	}
	for _, kv := range aboutProcess(nil, &model.Image{}) {
		if strings.HasPrefix(string(kv.Key), "code.") {
			t.Errorf("%s of a process without names", kv.Key)
		}
	}
}

func TestAWaitLinksToTheRunThatHadTheLock(t *testing.T) {
	for name, above := range map[string]string{
		"a trace of its own": "", "below the runtime's": sampled,
		"not below one that is not recorded": unsampled,
	} {
		t.Run(name, func(t *testing.T) {
			other := sandbox(parent(above), func(op *model.Operation) {
				op.ContainerID, op.Calls[0].Runs[0].Process = "c2", "9@9"
			})
			key := other.Key()
			if above == "" {
				key.Trace = event.TraceContext{}
			}
			waits := build(sandbox(func(op *model.Operation) {
				bridge(op).Facts = []*model.Fact{
					{When: between(12, 20), What: &model.Wait{
						Kind: event.WaitMutex, Name: "rtnl",
						Blame: &model.Blame{Call: key, Process: "9@9", Start: 10},
					}},
					{When: between(22, 30), What: &model.Wait{Kind: event.WaitMutex, Name: "rtnl"}},
				}
			}))
			var links []*tracepb.Span_Link
			for _, s := range waits {
				if s.Name == "wait for lock" {
					links = append(links, s.Links...)
				}
			}
			if len(links) != 1 || said(&tracepb.Span{Attributes: links[0].Attributes}, "cniscope.link").
				GetStringValue() != "it had the lock" {
				t.Fatalf("%v", links)
			}
			for _, s := range build(other) {
				if s.Name == "bridge ADD" && slices.Equal(s.SpanId, links[0].SpanId) && slices.Equal(s.TraceId, links[0].TraceId) {
					return
				}
			}
			t.Errorf("no span of the other pod has the link's id")
		})
	}
}
