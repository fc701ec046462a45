package gather

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
)

// chainsOf returns the chains that the reference plugins made for an attachment (plugins, pkg/utils and portmap). Both
// take iptables by default, and nftables where iptables is missing.
func chainsOf(c *cached) (chains []string) {
	type plugin struct {
		Type          string `json:"type"`
		Backend       string `json:"backend"`
		IPMasq        bool   `json:"ipMasq"`
		IPMasqBackend string `json:"ipMasqBackend"`
	}
	var list struct {
		plugin
		Plugins []plugin `json:"plugins"`
	}
	if json.Unmarshal(c.Config, &list) != nil {
		return nil
	}
	add := func(prefix, backend, otherwise string) {
		own := fmt.Sprintf("CNI-%s%x", prefix, sha512.Sum512([]byte(c.NetworkName+c.ContainerID)))[:28]
		switch backend {
		case "":
			own += or + otherwise
		case "nftables":
			own = otherwise
		}
		if own = "chain " + own; !slices.Contains(chains, own) {
			chains = append(chains, own)
		}
	}
	mapped := false
	for _, port := range c.Capability.Ports {
		mapped = mapped || port.HostPort > 0
	}
	for _, p := range append(list.Plugins, list.plugin) {
		switch {
		case p.Type == "portmap" && mapped:
			add("DN-", p.Backend, "hostports")
		case (p.Type == "bridge" || p.Type == "ptp") && p.IPMasq:
			add("", p.IPMasqBackend, "masq_checks")
		}
	}
	return chains
}

const or = " or "

// Gone returns, by sandbox, a thing that was set for a pod and is gone from the node. Held is what was seen of ADDs; libcni's
// cache says more.
func Gone(ctx context.Context, o fact.Options, held []leak.Attachment, sandboxes []string) map[string][]event.Obstacle {
	f := begin(ctx, o)
	f.Scope.Value.Recent.Held = held
	withRuntime(ctx, f, func(*grpc.ClientConn, cri.RuntimeServiceClient) {
		sees := viewOf(f.Runtime.Value.PID, f.Contained)
		files, _ := resultFiles(sees, &f.Held.Value)
		f.Held.Value.Living = readResults(sees, slices.DeleteFunc(files, func(file string) bool {
			return !slices.ContainsFunc(sandboxes, func(sandbox string) bool { return strings.Contains(file, sandbox) })
		}))
	})
	for _, sandbox := range sandboxes {
		f.Held.Value.Living = append(f.Held.Value.Living, leak.Attachment{ContainerID: sandbox})
	}
	list := o.Chains
	if list == nil {
		list = chains
	}
	f.Chains.Value, f.Chains.Err = list(ctx)
	found := map[string][]event.Obstacle{}
	all, _ := goneFrom(f)
	for _, g := range all {
		found[g.ContainerID] = g.Obstacles[:1] // a verdict names one; thousands do not fit a recording's line
	}
	return found
}

func goneFrom(f *fact.Facts) (all []fact.Gone, err error) {
	var living []leak.Attachment // one for each sandbox
	at := map[string]int{}
	for _, a := range f.Held.Value.Living {
		i, known := at[a.ContainerID]
		if !known {
			at[a.ContainerID] = len(living)
			living = append(living, a)
			continue
		}
		living[i].Set = append(living[i].Set, a.Set...)
		living[i].NetNS = cmp.Or(living[i].NetNS, a.NetNS)
	}
	for _, a := range f.Scope.Value.Recent.Held {
		if i, is := at[a.ContainerID]; is && !a.Failed {
			living[i].Set = append(living[i].Set, a.Set...)
			living[i].NetNS = cmp.Or(living[i].NetNS, a.NetNS)
		}
	}
	var wanted []string
	for _, a := range living {
		wanted = append(wanted, a.Set...)
	}
	here, err := things(wanted)
	for _, c := range f.Chains.Value {
		if c.Rules > 0 {
			here["chain "+c.Name] = true
		}
	}
	stale := staleNeighbors(viewOf(f.Runtime.Value.PID, f.Contained), living)
	for _, a := range living {
		obstacles := stale[a.ContainerID]
		for _, thing := range a.Set {
			alternatives := strings.Split(thing, or)
			isChain := strings.HasPrefix(thing, "chain ")
			missing := isChain && f.Chains.Err == nil || !isChain && err == nil
			for i, name := range alternatives {
				if i > 0 {
					name = "chain " + name
				}
				missing = missing && !here[name]
			}
			if missing {
				obstacles = append(obstacles, event.Gone(alternatives[0]))
			}
		}
		if len(obstacles) > 0 {
			all = append(all, fact.Gone{Attachment: a, Obstacles: obstacles})
		}
	}
	return all, err
}
