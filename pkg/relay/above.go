package relay

import (
	"cmp"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/event"
)

// sandboxID is the form of containerd's sandbox ids: 32 random bytes in hex
// (internal/cri/util, GenerateID).
const sandboxID = `[0-9a-f]{64}`

var (
	isSandboxID = regexp.MustCompile(`^` + sandboxID + `$`)
	// told finds the sandbox in what containerd 1.7 says of a request: its log lines become span events at
	// log level info and below, and its error is the span's status. Both are kept to whole phrases, because
	// containers have ids of the same form.
	told = regexp.MustCompile(`(?:returns sandbox id|^StopPodSandbox for|^RemovePodSandbox for|network for sandbox) "(` + sandboxID + `)"`)
)

// sandboxOf returns the sandbox whose network containerd may have set up or torn down
// during a span; empty where s is not such a span.
//
// A sandbox has several: the request, within it `cri.sandbox.run` (2.3), within that
// `cni.setup_pod_network` (2.3). Which one a CNI call hangs under is the narrowest that was under way all
// the time the call was: so the ADD goes under `cni.setup_pod_network` where there is one, and the DEL
// after a failed ADD under what is around both.
func sandboxOf(s *span) string {
	switch s.name {
	case "cni.setup_pod_network", "cri.sandbox.run":
		return validID(s.sandbox)
	}
	// "runtime.v1.RuntimeService/RunPodSandbox"; 1.7 also knows v1alpha2.
	service, method, ok := strings.Cut(s.name, ".RuntimeService/")
	if !ok || !strings.HasPrefix(service, "runtime.v1") {
		return ""
	}
	switch method {
	case "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox":
	default:
		return ""
	}
	if s.sandbox != "" { // 2.x; of RunPodSandbox until 2.2
		return validID(s.sandbox)
	}
	for _, text := range append(s.events, s.status) {
		if m := told.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

func validID(id string) string {
	if isSandboxID.MatchString(id) {
		return id
	}
	return ""
}

// aboveOf returns what s says of a sandbox; nil where it says nothing. wall is the
// calendar time, in ns, at which the monotonic clock shows zero.
func aboveOf(s *span, wall int64) *event.Above {
	id := sandboxOf(s)
	start, end := int64(s.start), int64(s.end)
	if id == "" || start <= 0 || end < start || len(s.trace) != 16 || len(s.id) != 8 {
		return nil
	}
	context := trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte(s.trace), SpanID: [8]byte(s.id)})
	if !context.IsValid() {
		return nil
	}
	above := &event.Above{
		SandboxID: id, Name: s.name, Start: start - wall, End: end - wall,
		Trace: event.TraceContext{Parent: "00-" + hex.EncodeToString(s.trace) + "-" + hex.EncodeToString(s.id) + "-01"},
	}
	if state, err := trace.ParseTraceState(s.state); err == nil {
		above.Trace.State = state.String()
	}
	return above
}

// narrowestFirst puts the spans of one request in the order in which the first one that
// fits a call is the right one.
func narrowestFirst(all []*event.Above) {
	slices.SortStableFunc(all, func(a, b *event.Above) int {
		return cmp.Compare(a.End-a.Start, b.End-b.Start)
	})
}
