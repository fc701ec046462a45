package doctor

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// An agent that asks the API server at a Service's address waits for ever if no proxy serves it.
func TestAServiceAddressThatNoProxyServes(t *testing.T) {
	const line = `level=error msg="Unable to contact k8s api-server" error="dial tcp 10.96.0.1:443: i/o timeout"`
	agent := func(f *fact.Facts, last, before string) {
		f.Containers.Value = []fact.Container{{Namespace: "kube-system", Pod: "cilium-x", Name: "cilium-agent", State: "running", SandboxReady: true, Owner: "Cilium", LastLine: last, LineBefore: before}}
	}
	says := []string{"the Service address 10.96.0.1:443", "k8sServiceHost"}
	const check = "service-proxies"
	judged(t, []change{
		{check, "now", func(f *fact.Facts) { agent(f, line, "") }, Problem, says},
		{check, "before its restart", func(f *fact.Facts) { agent(f, "starting", line) }, Problem, says},
		{check, "control: the server's own address", func(f *fact.Facts) { agent(f, strings.ReplaceAll(line, "10.96.0.1", "192.168.7.2"), "") }, "", nil},
		{check, "control: kube-proxy runs", func(f *fact.Facts) {
			agent(f, line, "")
			f.Processes.Value = []fact.Process{{Name: "kube-proxy", HostNet: true}}
		}, "", nil},
		{check, "control: Cilium serves it", func(f *fact.Facts) {
			agent(f, line, "")
			f.LB.Value.Services = 9
		}, "", nil},
	}...)
}
