//go:build linux

package windows

import (
	"testing"
	"time"
)

const onlyAgent = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","agent":"\\\\.\\pipe\\antrea-test"}]}`

// A command with the pod's adapter in its arguments is certainly the pod's, one without is
// unconfirmed. Snapshots of a busy machine miss some, which the next pod may show.
func TestAnAgentOverANamedPipe(t *testing.T) {
	n := newNode(t, onlyAgent)
	endpoint, spans := n.backend()
	n.agent("-after", "2s", "-blind")
	n.containerd(endpoint)
	// No sandbox lives under wine, so the driver makes the commands after an ADD.
	log := n.cniscope(endpoint, "[probe]\ncallers = ['C:/containerd/driver.exe']\n")
	pods := []string{"db-6cqff", "db-9x2lk", "db-t4wzv"}
	begin := n.drive(log, pods...)
	for _, pod := range pods {
		begin(pod)
		var w work
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if w = workFor(pod, spans()); w.certain > 1 || w.candidate > 1 || w.after > 1 {
				t.Fatalf("%s: something is told twice: %+v; %v", pod, w, names(spans(), pod))
			}
			if w == (work{1, 1, 1}) {
				return
			}
		}
		t.Logf("%s: %+v; %v", pod, w, names(spans(), pod))
	}
	t.Error("no pod has one of each")
}

// work counts the spans of powershell.exe for a pod.
type work struct{ certain, candidate, after int }

func workFor(pod string, spans []span) (w work) {
	behind := map[string]bool{}
	for _, s := range spans {
		if s.Name == "work after ADD" {
			behind[string(s.SpanId)] = true
		}
	}
	for _, s := range spans {
		switch {
		case s.from["k8s.pod.name"] != pod || s.Name != "powershell":
		case s.about["cniscope.attribution"] == "candidate":
			w.candidate++
		case behind[string(s.ParentSpanId)]:
			w.after++
		default:
			w.certain++
		}
	}
	return w
}
