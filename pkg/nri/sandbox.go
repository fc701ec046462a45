package nri

import (
	"context"
	"regexp"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// Kubernetes' limits: 253 bytes for names, 317 for a label's key and 63 for its value.
const (
	maxLabels = 64
	maxKey    = 320
	maxIPs    = 16
	maxTrace  = 512 // W3C's recommendation for tracestate
)

var parentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

const annotationPrefix = "cniscope.dev/"

func sandboxOf(phase event.Phase, pod *api.PodSandbox, trace event.TraceContext) *event.Sandbox {
	return &event.Sandbox{
		Phase: phase,
		ID:    clean(pod.GetId()),
		Pod: event.Pod{
			Namespace: clean(pod.GetNamespace()),
			Name:      clean(pod.GetName()),
			UID:       clean(pod.GetUid()),
		},
		Labels:         some(pod.GetLabels(), ""),
		Annotations:    annotations(pod.GetAnnotations()),
		RuntimeHandler: clean(pod.GetRuntimeHandler()),
		IPs:            addresses(pod.GetIps()),
		NetNS:          networkNamespace(pod),
		PID:            pod.GetPid(),
		Trace:          trace,
	}
}

func clean(s string) string { return text.Clean(s, text.Bound) }

func some(all map[string]string, prefix string) map[string]string {
	var out map[string]string
	for key, value := range all {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if out == nil {
			out = make(map[string]string, min(len(all), maxLabels))
		}
		out[text.Clean(key, maxKey)] = clean(value)
		if len(out) == maxLabels {
			break
		}
	}
	return out
}

func annotations(all map[string]string) map[string]string {
	out := some(all, annotationPrefix)
	if parent := all[event.PodTraceparent]; parentForm.MatchString(parent) {
		if out == nil {
			out = map[string]string{}
		}
		out[event.PodTraceparent] = parent
	}
	return out
}

func addresses(ips []string) []string {
	if len(ips) == 0 {
		return nil
	}
	out := make([]string, 0, min(len(ips), maxIPs))
	for _, ip := range ips[:cap(out)] {
		out = append(out, clean(ip))
	}
	return out
}

// networkNamespace returns the sandbox's CNI_NETNS; empty after its removal.
func networkNamespace(pod *api.PodSandbox) string {
	for _, ns := range pod.GetLinux().GetNamespaces() {
		if ns.GetType() == "network" {
			return clean(ns.GetPath())
		}
	}
	return ""
}

// traceOf returns the context that containerd 2.2 sends.
func traceOf(ctx context.Context) event.TraceContext {
	var trace event.TraceContext
	if parent, ok := ttrpc.GetMetadataValue(ctx, "traceparent"); ok {
		trace.Parent = text.Clean(parent, maxTrace)
		state, _ := ttrpc.GetMetadataValue(ctx, "tracestate")
		trace.State = text.Clean(state, maxTrace)
	}
	return trace
}
