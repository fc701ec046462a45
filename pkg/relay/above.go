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

// sandboxID matches 32 random bytes in hex (internal/cri/util, GenerateID).
const sandboxID = `[0-9a-f]{64}`

var (
	isSandboxID = regexp.MustCompile(`^` + sandboxID + `$`)
	// told matches containerd 1.7's span events and status in whole phrases: container ids look alike.
	told = regexp.MustCompile(`(?:returns sandbox id|^StopPodSandbox for|^RemovePodSandbox for|network for sandbox) "(` +
		sandboxID + `)"`)
)

// sandboxOf returns the sandbox whose network a span may cover, or "". Spans nest: the request, `cri.sandbox.run`
// (2.3), `cni.setup_pod_network` (2.3).
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
	if s.sandbox != "" { // 2.x; RunPodSandbox up to 2.2
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

// aboveOf returns a sandbox span's event, or nil. wall is the wall-clock time at monotonic 0, in ns.
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

func narrowestFirst(all []*event.Above) {
	slices.SortStableFunc(all, func(a, b *event.Above) int {
		return cmp.Compare(a.End-a.Start, b.End-b.Start)
	})
}
