package fact

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
)

// ErrSilent stands for each fact that only a runtime can tell.
var ErrSilent = errors.New("no container runtime answers (see runtime)")

// Kinds of Asked.
const (
	AsksUnix       = "unix"
	AsksTCP        = "tcp"
	AsksFile       = "file"       // written by an agent, read by the plugin for each pod
	AsksKubeconfig = "kubeconfig" // names an API server
)

// Asked is what a loaded network's plugin asks for each pod.
type Asked struct {
	Network, Plugin string
	Kind, Address   string
	// Seen means that cniscope saw an agent answer at Address. Key is the configuration key that sets it. Without
	// either, Address is the plugin's default.
	Seen bool
	Key  string
}

// From is the address's source.
func (a Asked) From() string {
	switch {
	case a.Seen:
		return "a running cniscope saw an agent answer there"
	case a.Key != "":
		return Sayf("this address is in the CNI configuration (%s)", a.Key)
	}
	return Sayf("this address is the default of %s", a.Plugin)
}

// Reach is the result of looking for an agent.
type Reach string

// Results of looking for an agent.
const (
	Answers Reach = "answers" // a process accepts, or the file exists
	Missing Reach = "missing"
	Refused Reach = "refused" // no process listens
	Silent  Reach = "silent"  // a process listens, but does not accept
	Unknown Reach = ""
)

// Agent is an Asked and its state.
type Agent struct {
	Asked
	// Server is the API server that a kubeconfig names.
	Server string
	Reach  Reach
	Err    string
	Made   time.Time // modification time of the file or socket
	// Process is the process that listens, nil if unknown.
	Process *Server
	// Containers serve the socket, or may write beside it.
	Containers []Container
	// Known is what a running cniscope recorded of the agent.
	Known *control.Agent
}

// Server is a process that plugins ask.
type Server struct {
	PID      int
	Name     string
	Started  time.Time
	State    event.AgentState // of all its threads together
	Waits    string           // kernel function
	Group    string
	LastLine string // of its log
}

// Does describes its state.
func (s Server) Does() string {
	switch s.State {
	case event.AgentStopped:
		return "stopped"
	case event.AgentFrozen:
		return "frozen by its cgroup"
	case event.AgentUninterruptible:
		return strings.TrimSpace("blocked in the kernel, immune to signals (state D) " + s.in())
	case event.AgentRunning:
		return "on a CPU, or waiting for one"
	case event.AgentWaiting:
		return "waiting " + s.in()
	}
	return "idle"
}

func (s Server) in() string {
	if s.Waits == "" {
		return ""
	}
	return Sayf("in %s", s.Waits)
}

type asks struct{ plugin, kind, address, key string }

var defaultAddresses = []asks{
	// cilium/cilium pkg/defaults: SockPath
	{"cilium-cni", AsksUnix, "/var/run/cilium/cilium.sock", ""},
	// antrea-io/antrea pkg/cni: AntreaCNISocketAddr
	{"antrea", AsksUnix, "/var/run/antrea/cni.sock", ""},
	// multus-cni pkg/server/api: SocketPath
	{"multus-shim", AsksUnix, "/run/multus/multus.sock", "daemonSocketDir"},
	// ovn-kubernetes go-controller/pkg/cni/types: ServerRunDir
	{"ovn-k8s-cni-overlay", AsksUnix, "/var/run/ovn-kubernetes/cni/ovn-cni-server.sock", ""},
	// kube-ovn pkg/util: DefaultDaemonSocket
	{"kube-ovn", AsksUnix, "/run/openvswitch/kube-ovn-daemon.sock", "server_socket"},
	// containernetworking/plugins plugins/ipam/dhcp: defaultSocketPath
	{"dhcp", AsksUnix, "/run/cni/dhcp.sock", "daemonSocketPath"},
	// amazon-vpc-cni-k8s cmd/routed-eni-cni-plugin: ipamdAddress
	{"aws-cni", AsksTCP, "127.0.0.1:50051", ""},
	// weaveworks/weave common: WEAVE_HTTP_ADDR
	{"weave-net", AsksTCP, "127.0.0.1:6784", ""},
	// azure-container-networking cns/client: defaultBaseURL
	{"azure-ipam", AsksTCP, "127.0.0.1:10090", ""},
	// flannel-io/cni-plugin: defaultSubnetFile
	{"flannel", AsksFile, "/run/flannel/subnet.env", "subnetFile"},
	// calico cni-plugin/internal/pkg/utils: DetermineNodename
	{"calico", AsksFile, "/var/lib/calico/nodename", "nodename_file"},
}

// AskedBy returns what the loaded networks' plugins ask: addresses that cniscope saw answer, configured ones, and
// defaults.
func AskedBy(f *Facts) (all []Asked) {
	add := func(a Asked) {
		if !slices.ContainsFunc(all, func(b Asked) bool { return a.Kind == b.Kind && SamePlace(a.Address, b.Address) }) {
			all = append(all, a)
		}
	}
	for _, l := range f.CRI.Value.Loaded {
		for _, s := range f.Scope.Value.Recent.Agents {
			// A redacted address is incomplete.
			if s.Network == l.Name && !s.Answered.IsZero() && uses(l.Network, s.Plugin) && !strings.Contains(s.Address, "‹") {
				add(Asked{Network: l.Name, Plugin: Clean(s.Plugin), Kind: s.Kind, Address: Clean(s.Address), Seen: true})
			}
		}
		for _, a := range l.Asks {
			a.Network = l.Name
			add(a)
		}
	}
	return all
}

func uses(n event.Network, plugin string) bool {
	return slices.ContainsFunc(n.Plugins, func(p event.Plugin) bool { return p.Type == plugin || p.IPAM == plugin })
}

// SamePlace compares paths or addresses: /var/run is a link to /run.
func SamePlace(a, b string) bool {
	short := func(s string) string {
		if strings.HasPrefix(s, "/var/run/") {
			return strings.TrimPrefix(s, "/var")
		}
		return s
	}
	return short(a) == short(b)
}

// AskedIn returns the sockets and files that a plugin and its IPAM ask by configuration or default.
func AskedIn(plugin, ipam string, source []byte) (all []Asked) {
	var conf map[string]any
	_ = json.Unmarshal(source, &conf)
	found := places(conf, 0)
	for _, k := range defaultAddresses {
		if k.plugin != plugin && k.plugin != ipam || off(k, conf) {
			continue
		}
		place := Asked{Plugin: k.plugin, Kind: k.kind, Address: k.address}
		if named, is := valueOf(conf, k.key); is {
			place.Address, place.Key = path.Clean(named), k.key
			if strings.HasSuffix(k.key, "Dir") {
				place.Address = path.Join(named, path.Base(k.address))
			}
		}
		all = append(all, place)
	}
	for _, p := range found {
		if p.Kind == AsksUnix && slices.ContainsFunc(all, func(a Asked) bool {
			return a.Kind == AsksUnix && SamePlace(a.Address, p.Address)
		}) {
			continue
		}
		p.Plugin = plugin
		all = append(all, p)
	}
	return all
}

func off(k asks, conf map[string]any) bool {
	_, named := valueOf(conf, "nodename")
	optional, _ := conf["nodename_file_optional"].(bool)
	return k.plugin == "calico" && (named || optional)
}

func valueOf(conf map[string]any, key string) (string, bool) {
	if key == "" {
		return "", false
	}
	if s, is := conf[key].(string); is && s != "" {
		return Clean(s), true
	}
	if ipam, is := conf["ipam"].(map[string]any); is {
		s, is := ipam[key].(string)
		return Clean(s), is && s != ""
	}
	return "", false
}

const deepest = 4

func places(conf map[string]any, depth int) (all []Asked) {
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		switch value := conf[key].(type) {
		case map[string]any:
			if depth < deepest {
				all = append(all, places(value, depth+1)...)
			}
		case string:
			if kind, address := place(key, value); kind != "" {
				all = append(all, Asked{Kind: kind, Address: Clean(address), Key: Clean(key)})
			}
		}
	}
	return all
}

func place(key, value string) (kind, address string) {
	socket, scheme := strings.CutPrefix(value, "unix://")
	switch {
	case scheme && path.IsAbs(socket), path.IsAbs(value) && strings.HasSuffix(value, ".sock"):
		return AsksUnix, path.Clean(socket)
	case strings.EqualFold(key, "kubeconfig") && path.IsAbs(value):
		return AsksKubeconfig, path.Clean(value)
	}
	return "", ""
}
