//go:build linux

package cnis

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
)

// warm runs pods until a pod needs no compilation; that pod must be ordinary.
func (n *node) warm() {
	n.Helper()
	const compiled = "Compiled new BPF template"
	for i := range 5 {
		before := strings.Count(n.logOf(ciliumAgent), compiled)
		p := n.add(fmt.Sprintf("warm-%d-%d", len(n.logOf(ciliumAgent)), i))
		if strings.Count(n.logOf(ciliumAgent), compiled) == before && p.took.Seconds() < 2 {
			if n.scope != nil {
				n.ordinary(n.call(p.name))
			}
			return
		}
	}
	n.Error("the agent goes on compiling")
}

func (n *node) endpoints() map[string]string {
	n.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", agentSocket)
	}}}
	answer, err := client.Get("http://cilium/v1/endpoint")
	harness.Check(n.T, err)
	defer answer.Body.Close()
	var all []struct {
		Status struct {
			Networking struct {
				InterfaceName string `json:"interface-name"`
			}
			ExternalIdentifiers struct {
				PodName string `json:"k8s-pod-name"`
			} `json:"external-identifiers"`
		}
	}
	harness.Check(n.T, json.NewDecoder(answer.Body).Decode(&all))
	found := map[string]string{}
	for _, e := range all {
		if e.Status.ExternalIdentifiers.PodName != "" {
			found[e.Status.ExternalIdentifiers.PodName] = e.Status.Networking.InterfaceName
		}
	}
	return found
}

func (n *node) certainIsTrue(pods []pod) {
	n.Helper()
	ends := n.endpoints()
	owner := map[string]string{}
	for pod, end := range ends {
		owner[end] = pod
	}
	checked := 0
	for _, p := range pods {
		for _, x := range n.call(p.name).Below("command", "request", "interface", "bpf") {
			name := x.Attrs["network.interface.name"]
			if x.Attrs["cniscope.attribution"] != "certain" || owner[name] == "" {
				continue
			}
			checked++
			if owner[name] != p.name {
				n.Errorf("%s of %s (%s) is said to be certain for %s", x.Name, name, owner[name], p.name)
			}
		}
	}
	n.Logf("%d statements that are said to be certain name a pod's interface", checked)
}
