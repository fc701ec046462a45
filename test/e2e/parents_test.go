//go:build linux

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// The CRI client has no trace, a sampled trace, or an unsampled one.
const (
	asking    = "0123456789abcdef"
	askedIn   = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampled   = "00-" + askedIn + "-" + asking + "-01"
	unsampled = "00-" + askedIn + "-" + asking + "-00"
)

type tracing func(addr string) rig.Options

func byEnvironment(protocol string, more ...string) tracing {
	return func(addr string) rig.Options {
		return rig.Options{Env: append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + addr, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol}, more...)}
	}
}

// byDropIn is for 1.7, with the file of configs.
func byDropIn(addr string) rig.Options {
	text, err := os.ReadFile("../../configs/containerd/tracing-1.7.toml")
	if err != nil {
		panic(err)
	}
	return rig.Options{DropIns: map[string]string{
		"50-tracing.toml": strings.ReplaceAll(string(text), "127.0.0.1:4319", addr),
	}}
}

func off(string) rig.Options { return rig.Options{} }

// The parents of two pods' calls under each containerd: web works, broken fails.
func TestWhatIsAboveTheCallsUnderEachContainerd(t *testing.T) {
	const soon = "OTEL_BSP_SCHEDULE_DELAY=200" // ms; default 5 s
	for _, test := range []struct {
		name       string
		containerd string // in the tools directory; empty: 2.4.2
		tracing    tracing
		direct     bool // containerd exports to Jaeger directly
		parent     string
		want       string
	}{{
		"2.3.7 with the relay", "containerd-2.3", byEnvironment("http/protobuf", soon), false, sampled, `
web ADD < cni.setup_pod_network < cri.sandbox.run < RunPodSandbox < asking
web DEL < StopPodSandbox < asking
broken ADD < cni.setup_pod_network < cri.sandbox.run < RunPodSandbox < asking
broken DEL < cri.sandbox.run < RunPodSandbox < asking`,
	}, {
		"1.7.35 with the relay", "containerd-1.7", byDropIn, false, sampled, `
web ADD < RunPodSandbox < asking
web DEL < StopPodSandbox < asking
broken ADD < RunPodSandbox < asking
broken DEL < RunPodSandbox < asking`,
	}, {
		"2.3.7 with the relay, unsampled parent", "containerd-2.3", byEnvironment("grpc", soon), false, unsampled, `
web ADD < pod network setup ~ NRI call
web DEL < pod network teardown ~ NRI call
broken ADD < pod network setup
broken DEL < pod network teardown`,
	}, {
		"2.4.2 with tracing off", "", off, true, sampled, `
web ADD < pod network setup
web DEL < pod network teardown
broken ADD < pod network setup
broken DEL < pod network teardown`,
	}, {
		"2.4.2 with an unsampled parent", "", byEnvironment("grpc", soon), true, unsampled, `
web ADD ~ parent was not sampled < pod network setup ~ NRI call
web DEL ~ parent was not sampled < pod network teardown ~ NRI call
broken ADD ~ parent was not sampled < pod network setup
broken DEL < cni.Remove`,
	}, {
		"2.4.2 with a sampled parent", "", byEnvironment("grpc", soon), true, sampled, `
web ADD < cni.asynchAttach < cni.Setup < cni.setup_pod_network < cri.sandbox.run < RunPodSandbox < asking
web DEL < cni.Remove < StopPodSandbox < asking
broken ADD < cni.asynchAttach < cni.Setup < cni.setup_pod_network < cri.sandbox.run < RunPodSandbox < asking
broken DEL < cni.Remove`,
	}} {
		t.Run(test.name, func(t *testing.T) {
			s := setJaeger(t)
			addr, toml := strings.TrimPrefix(s.jaeger.OTLP(), "http://"), keepAll
			if !test.direct {
				addr = harness.Address(t)
				toml += fmt.Sprintf("[relay]\nlisten = %q\n", addr)
			}
			ro := test.tracing(addr)
			ro.Containerd = scope.Containerd(t, test.containerd)
			ro.Networks = []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("moody")}}}
			ro.Plugins = map[string][]byte{"moody": spoil(`case $CNI_ARGS in *K8S_POD_NAME=broken*) fail 11 "not now";; esac`)}
			s.startRig(ro)
			s.startScope(scope.Options{TOML: toml})

			s.ctx = metadata.AppendToOutgoingContext(s.ctx, "traceparent", test.parent)
			id := s.pod(rig.PodOptions{Namespace: "shop", Name: "web"})
			if _, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "broken"}); err == nil {
				t.Error("the pod without a network runs")
			}
			harness.Check(t, s.rig.StopPod(s.ctx, id))

			s.ancestries(4, test.want, "web", "broken")
			harness.Check(t, s.scope.Stop())
			if log := s.scope.LogText(); !test.direct && !strings.Contains(log, "undelivered=0 dropped=0") {
				t.Error("not all of containerd's spans went on; see cniscope's log")
			}
		})
	}
}

// Every call counts as slow, so it is kept even with an unsampled parent.
const keepAll = "[limits]\nsettle = \"2s\"\n[slow]\ncall = \"1ms\"\n"

func (s *stage) ancestries(calls int, want string, pods ...string) {
	s.Helper()
	harness.Eventually(s, func() error {
		all := s.calls("DEL", calls)
		if n := len(only(all, "call", "CNI ADD")); n < calls {
			return fmt.Errorf("%d CNI ADD calls arrived", n)
		}
		byID := map[string]*span{}
		for _, call := range only(all, "call", "") {
			found, err := s.jaeger.Traces(s.ctx, call.trace())
			if err != nil {
				return err
			}
			for _, x := range flatten(found) {
				byID[x.id()] = x
			}
		}
		drawn := ""
		for _, pod := range pods {
			for _, command := range []string{"ADD", "DEL"} {
				drawn += s.ancestry(byID, of(only(all, "call", "CNI "+command), pod), pod+" "+command)
			}
		}
		if drawn != want {
			return fmt.Errorf("got:%s\nwant:%s", drawn, want)
		}
		return nil
	})
}

// ancestry draws the parents of an operation's calls, which are equal for lo and eth0.
func (s *stage) ancestry(byID map[string]*span, calls []*span, line string) string {
	var lines []string
	for _, call := range calls {
		text := "\n" + line
		for x := call; ; {
			for _, l := range x.Links {
				if why := attributes(l.Attributes)["cniscope.link"].GetStringValue(); why == "NRI call" || why == "parent was not sampled" {
					text += " ~ " + why
				}
			}
			up := byID[x.parent()]
			if up == nil {
				if x.parent() == asking && x.trace() == askedIn {
					text += " < asking"
				} else if x.parent() != "" {
					text += " < nobody"
				}
				break
			}
			if up.trace() != x.trace() {
				text += " (another trace)"
			}
			if x.StartTimeUnixNano < up.StartTimeUnixNano || x.EndTimeUnixNano > up.EndTimeUnixNano {
				s.Errorf("%s: %s is not within %s", line, x.Name, up.Name)
			}
			text += " < " + up.Name[strings.LastIndexByte(up.Name, '/')+1:]
			x = up
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}
