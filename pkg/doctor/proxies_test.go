package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// An agent that asks the API server at a Service's address waits for ever if no proxy serves it.
func TestAServiceAddressThatNoProxyServes(t *testing.T) {
	const line = `level=error msg="Unable to contact k8s api-server" error="dial tcp 10.96.0.1:443: i/o timeout"`
	agent := func(last, before string) fact.Container {
		return fact.Container{Namespace: "kube-system", Pod: "cilium-x", Name: "cilium-agent", State: "running", SandboxReady: true, Owner: "Cilium", LastLine: last, LineBefore: before}
	}
	for name, test := range map[string]struct {
		change func(*fact.Facts)
		found  bool
	}{
		"now":                {func(f *fact.Facts) { f.Containers.Value = []fact.Container{agent(line, "")} }, true},
		"before its restart": {func(f *fact.Facts) { f.Containers.Value = []fact.Container{agent("starting", line)} }, true},
		"control: the server's own address": {func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{agent(strings.ReplaceAll(line, "10.96.0.1", "192.168.7.2"), "")}
		}, false},
		"control: kube-proxy runs": {func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{agent(line, "")}
			f.Processes.Value = append(f.Processes.Value, fact.Process{Name: "kube-proxy", HostNet: true})
		}, false},
		"control: Cilium serves it": {func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{agent(line, "")}
			f.LB.Value.Services = 9
		}, false},
	} {
		f := whole()
		f.Processes.Value = slices.DeleteFunc(f.Processes.Value, func(p fact.Process) bool { return p.Name == "kube-proxy" })
		test.change(f)
		i := slices.IndexFunc(Judge(f).Findings, func(x Finding) bool { return x.Check == "service-proxies" })
		if (i >= 0) != test.found {
			t.Errorf("%s: %+v", name, Judge(f).Findings)
			continue
		}
		if i < 0 {
			continue
		}
		x := Judge(f).Findings[i]
		if x.Level != Problem || !strings.Contains(x.Summary, "the Service address 10.96.0.1:443") || !strings.Contains(x.Remedy[0], "k8sServiceHost") {
			t.Errorf("%s: %+v", name, x)
		}
	}
}
