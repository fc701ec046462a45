package relay

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	return harness.Must(os.ReadFile("testdata/" + name))(t)
}

func aboves(t testing.TB, request []byte) (all []*event.Above) {
	t.Helper()
	if _, err := spansOf(request, func(s *span) {
		if above := aboveOf(s, 0); above != nil {
			all = append(all, above)
		}
	}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all) // containerd sends the narrowest first
	narrowestFirst(all)
	return all
}

// Real spans of containerd per sandbox, drawn as a tree by time.
func TestWhichSpansOfContainerdAreAboveASandboxsCalls(t *testing.T) {
	for file, want := range map[string]string{
		"containerd-2.3.7.pb": `
a: cni.setup_pod_network < cri.sandbox.run < RunPodSandbox
b: cni.setup_pod_network < cri.sandbox.run < RunPodSandbox
c: cni.setup_pod_network < cri.sandbox.run < RunPodSandbox
a: StopPodSandbox
a: RemovePodSandbox
c: RemovePodSandbox`,
		"containerd-1.7.35.pb": `
a: RunPodSandbox
b: RunPodSandbox
c: RunPodSandbox
a: StopPodSandbox
a: RemovePodSandbox
c: RemovePodSandbox`,
		"containerd-1.7.35-warn.pb": `
a: RunPodSandbox`,
	} {
		t.Run(file, func(t *testing.T) {
			harness.Equal(t, "\n"+draw(t, recorded(t, file)), want)
		})
	}
}

// draw groups a recording's spans by request, in order of time. Sandboxes are named a, b and c.
func draw(t *testing.T, request []byte) string {
	type group struct {
		*event.Above
		spans string
	}
	var groups []*group
	all := aboves(t, request)
	slices.Reverse(all) // the widest first
next:
	for _, above := range all {
		name := above.Name[strings.LastIndexByte(above.Name, '/')+1:]
		for _, g := range groups {
			if g.Start <= above.Start && above.End <= g.End && g.SandboxID == above.SandboxID {
				g.spans = name + " < " + g.spans
				continue next
			}
		}
		groups = append(groups, &group{above, name})
	}
	slices.SortFunc(groups, func(a, b *group) int { return int(a.Start - b.Start) })
	var lines, sandboxes []string
	for _, g := range groups {
		if !slices.Contains(sandboxes, g.SandboxID) {
			sandboxes = append(sandboxes, g.SandboxID)
		}
		lines = append(lines, fmt.Sprintf("%c: %s", 'a'+slices.Index(sandboxes, g.SandboxID), g.spans))
	}
	return strings.Join(lines, "\n")
}

var (
	one = strings.Repeat("1", 64)
	two = strings.Repeat("2", 64)
)

func TestWhichSandboxASpanIsOf(t *testing.T) {
	const run, stop, remove = "runtime.v1.RuntimeService/RunPodSandbox", "runtime.v1.RuntimeService/StopPodSandbox", "runtime.v1.RuntimeService/RemovePodSandbox"
	said := func(format string, id string) []string { return []string{"something else", fmt.Sprintf(format, id)} }
	for name, test := range map[string]struct {
		span span
		want string
	}{
		"2.3: the span of the CNI calls":            {span{name: "cni.setup_pod_network", sandbox: one}, one},
		"2.3: what is around it":                    {span{name: "cri.sandbox.run", sandbox: one}, one},
		"2.x: a request with the attribute":         {span{name: stop, sandbox: one}, one},
		"2.0 to 2.2: RunPodSandbox has it, too":     {span{name: run, sandbox: one}, one},
		"1.7: a request by its log line":            {span{name: run, events: said(`RunPodSandbox for &PodSandboxMetadata{Name:web-0,} returns sandbox id %q`, one)}, one},
		"1.7: one that failed by its status":        {span{name: run, status: `failed to setup network for sandbox "` + one + `": no more today`}, one},
		"1.7: StopPodSandbox":                       {span{name: stop, events: said(`StopPodSandbox for %q`, one)}, one},
		"1.7: StopPodSandbox by a shortened id":     {span{name: stop, events: []string{`StopPodSandbox for "1111"`, `TearDown network for sandbox "` + one + `" successfully`}}, one},
		"1.7: RemovePodSandbox":                     {span{name: remove, events: said(`RemovePodSandbox for %q`, one)}, one},
		"1.7 with the older CRI":                    {span{name: "runtime.v1alpha2.RuntimeService/StopPodSandbox", events: said(`StopPodSandbox for %q`, one)}, one},
		"the attribute counts more than a log line": {span{name: stop, sandbox: one, events: said(`StopPodSandbox for %q`, two)}, one},

		"a container's id in a log line is not a sandbox's": {span{name: stop, events: said(`Stop container %q with signal terminated`, two)}, ""},
		"another span of the sandbox":                       {span{name: "metadata.sandbox.Update", sandbox: one}, ""},
		"a span around a container":                         {span{name: "runtime.v1.RuntimeService/StartContainer", sandbox: one}, ""},
		"an unnamed request":                                {span{name: run}, ""},
		"another service":                                   {span{name: "evil.RuntimeService/RunPodSandbox", sandbox: one}, ""},
		"an id that is none":                                {span{name: stop, sandbox: "../../etc"}, ""},
		"an id that is too short":                           {span{name: stop, sandbox: one[1:]}, ""},
		"an id that is too long":                            {span{name: "cri.sandbox.run", sandbox: one + "1"}, ""},
		"an id with a line feed":                            {span{name: "cri.sandbox.run", sandbox: one + "\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Equal(t, sandboxOf(&test.span), test.want)
		})
	}
}

func TestWhatIsToldOfASpan(t *testing.T) {
	whole := func(change func(*span)) *span {
		s := &span{
			name: "cri.sandbox.run", sandbox: one, start: 1_000_000_500, end: 1_000_000_900, state: "a=1,b=2",
			trace: []byte("0123456789abcdef"), id: []byte("01234567"),
		}
		change(s)
		return s
	}
	const context = "00-30313233343536373839616263646566-3031323334353637-01"
	const wall = 1_000_000_000
	got := aboveOf(whole(func(*span) {}), wall)
	want := event.Above{
		SandboxID: one, Name: "cri.sandbox.run", Start: 500, End: 900,
		Trace: event.TraceContext{Parent: context, State: "a=1,b=2"},
	}
	if got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := aboveOf(whole(func(s *span) { s.state = "\x1b[31m" }), wall); got == nil || got.Trace.State != "" {
		t.Errorf("a broken tracestate should be left out: %+v", got)
	}
	for name, change := range map[string]func(*span){
		"no trace id":             func(s *span) { s.trace = nil },
		"a trace id of zeros":     func(s *span) { s.trace = make([]byte, 16) },
		"a span id of zeros":      func(s *span) { s.id = make([]byte, 8) },
		"a long span id":          func(s *span) { s.id = s.trace },
		"an end before the start": func(s *span) { s.end = s.start - 1 },
		"no times":                func(s *span) { s.start, s.end = 0, 0 },
		"times beyond int64":      func(s *span) { s.start, s.end = 1<<63, 1<<63+1 },
	} {
		if got := aboveOf(whole(change), wall); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
