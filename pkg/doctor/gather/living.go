package gather

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// chainsOf returns the chains that the reference plugins made for an attachment. Both take iptables by
// default, and nftables where iptables is missing.
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

// tablesOfPlugins has nftables' tables by the chains in them.
var tablesOfPlugins = map[string]string{"hostports": "cni_hostport", "masq_checks": "cni_plugins_masquerade"}

// Want selects obstacles to pods' packets.
type Want struct {
	// Node selects obstacles to all pods.
	Node bool
	// Things that ADDs set for Sandboxes may be gone. Held is what was seen of ADDs; libcni's cache says more.
	Sandboxes []string
	Held      []leak.Attachment
	Residents *procfs.Residents
}

// InTheWay gathers obstacles to pods' packets.
func InTheWay(ctx context.Context, o fact.Options, w Want) *fact.Facts {
	f := begin(ctx, o)
	f.Scope.Value.Recent.Held = w.Held
	list := o.Chains
	if list == nil {
		list = Chains
	}
	var wg sync.WaitGroup
	find(ctx, &wg, &f.Chains, list)
	if w.Node {
		find(ctx, &wg, &f.Forwarding, forwarding)
	}
	withRuntime(ctx, f, func(_ *grpc.ClientConn, client cri.RuntimeServiceClient) {
		if w.Node {
			askFolder(ctx, f, client)
		}
		sees := viewOf(f.Runtime.Value.PID, f.Contained)
		files, _ := resultFiles(sees, &f.Held.Value)
		f.Held.Value.Living = readResults(sees, slices.DeleteFunc(files, func(file string) bool {
			return !slices.ContainsFunc(w.Sandboxes, func(sandbox string) bool {
				return strings.Contains(file, sandbox) && !strings.HasSuffix(file, sandbox+"-lo") // sets nothing
			})
		}))
	})
	for _, sandbox := range w.Sandboxes {
		f.Held.Value.Living = append(f.Held.Value.Living, leak.Attachment{ContainerID: sandbox})
	}
	wg.Wait()
	f.Gone.Value, f.Gone.Err = goneFrom(f, w.Residents)
	f.Gone.Value = append(f.Gone.Value, reused(f.Held.Value.Living)...)
	return f
}

func addChains(here map[string]bool, all []fact.Chain) {
	for _, c := range all {
		// CRI-O has a chain hostports, too.
		if own := tablesOfPlugins[c.Name]; c.Rules > 0 && (own == "" || own == c.Table) {
			here["chain "+c.Name] = true
		}
	}
}

func goneFrom(f *fact.Facts, r *procfs.Residents) (all []fact.Gone, err error) {
	var living []leak.Attachment
	at := map[string]int{}
	seen := len(f.Held.Value.Living)
	for n, a := range slices.Concat(f.Held.Value.Living, f.Scope.Value.Recent.Held) {
		switch i, known := at[a.ContainerID]; {
		case known && (n < seen || !a.Failed):
			living[i].Set = append(living[i].Set, a.Set...)
			living[i].NetNS = cmp.Or(living[i].NetNS, a.NetNS)
		case !known && n < seen:
			at[a.ContainerID] = len(living)
			living = append(living, a)
		}
	}
	var wanted []string
	for _, a := range living {
		wanted = append(wanted, a.Set...)
	}
	here, err := things(wanted)
	addChains(here, f.Chains.Value)
	stale := staleNeighbors(viewOf(f.Runtime.Value.PID, f.Contained), r, living)
	for _, a := range living {
		var obstacles []event.Obstacle
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
		if obstacles = append(obstacles, stale[a.ContainerID]...); len(obstacles) > 0 {
			all = append(all, fact.Gone{Attachment: a, Obstacles: obstacles})
		}
	}
	return all, err
}
