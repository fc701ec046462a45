package fact

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
)

// The kinds of what a plugin asks. Of a kubeconfig it is the API server that the file names.
const (
	AsksUnix       = "unix"
	AsksTCP        = "tcp"
	AsksFile       = "file" // written by an agent, read by the plugin for every pod
	AsksKubeconfig = "kubeconfig"
)

// Asked is whom or what a plugin of a loaded network asks for every pod.
type Asked struct {
	Network, Plugin string
	Kind, Address   string
	// Seen: a running cniscope saw somebody answer there. Key is the key of the plugin's configuration that
	// names it. Without either it is what the plugin is known to ask.
	Seen bool
	Key  string
}

// From says how that is known.
func (a Asked) From() string {
	switch {
	case a.Seen:
		return "a running cniscope saw an agent answer there"
	case a.Key != "":
		return Sayf("so says %s in its configuration", a.Key)
	}
	return Sayf("that is known of %s", a.Plugin)
}

// Reach is what came of asking whether somebody is there.
type Reach string

// What may come of it. Unknown says nothing.
const (
	Answers Reach = "answers" // somebody accepts, or the file is there
	Missing Reach = "missing" // there is no such socket or file
	Refused Reach = "refused" // nobody listens
	Silent  Reach = "silent"  // somebody listens, and accepts nothing
	Unknown Reach = ""
)

// Agent is whom a plugin asks, and whether it is there.
type Agent struct {
	Asked
	// Server is the address of the API server that a kubeconfig names.
	Server string
	Reach  Reach
	Err    string
	Made   time.Time // when the socket's file was made; zero if that is not known
	// Process listens; nil if none does, or it cannot be told.
	Process *Server
	// Containers are those that serve the socket, or that see its folder and may write there.
	Containers []Container
	// Known is what a running cniscope knows of it; nil if nothing.
	Known *control.Agent
}

// Server is a process that serves plugins.
type Server struct {
	PID      int
	Name     string
	Started  time.Time
	State    event.AgentState // by all of its threads
	Waits    string           // the kernel function that a thread of that state waits in
	Group    string           // its cgroup's folder
	LastLine string           // of its log, where its standard error is a file
}

// Does says what it does, in words.
func (s Server) Does() string {
	switch s.State {
	case event.AgentStopped:
		return "stopped"
	case event.AgentFrozen:
		return "frozen by its cgroup"
	case event.AgentUninterruptible:
		return strings.TrimSpace("waiting in the kernel for what no signal ends (D) " + s.in())
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

// asks is what one plugin is known to ask. Key is the key of its configuration that names another place: the
// address itself or, if the key ends in Dir, the folder that it is in.
type asks struct{ plugin, kind, address, key string }

// known are the plugins that are known to ask somebody, each by its own source.
func known() []asks {
	return []asks{
		{"cilium-cni", AsksUnix, "/var/run/cilium/cilium.sock", ""},                              // cilium/cilium pkg/defaults: SockPath
		{"antrea", AsksUnix, "/var/run/antrea/cni.sock", ""},                                     // antrea-io/antrea pkg/cni: AntreaCNISocketAddr
		{"multus-shim", AsksUnix, "/run/multus/multus.sock", "daemonSocketDir"},                  // multus-cni pkg/server/api: SocketPath
		{"ovn-k8s-cni-overlay", AsksUnix, "/var/run/ovn-kubernetes/cni/ovn-cni-server.sock", ""}, // ovn-kubernetes go-controller/pkg/cni/types: ServerRunDir
		{"kube-ovn", AsksUnix, "/run/openvswitch/kube-ovn-daemon.sock", "server_socket"},         // kube-ovn pkg/util: DefaultDaemonSocket
		{"dhcp", AsksUnix, "/run/cni/dhcp.sock", "daemonSocketPath"},                             // containernetworking/plugins plugins/ipam/dhcp: defaultSocketPath
		{"aws-cni", AsksTCP, "127.0.0.1:50051", ""},                                              // amazon-vpc-cni-k8s cmd/routed-eni-cni-plugin: ipamdAddress
		{"weave-net", AsksTCP, "127.0.0.1:6784", ""},                                             // weaveworks/weave common: WEAVE_HTTP_ADDR
		{"azure-ipam", AsksTCP, "127.0.0.1:10090", ""},                                           // azure-container-networking cns/client: defaultBaseURL
		{"flannel", AsksFile, "/run/flannel/subnet.env", "subnetFile"},                           // flannel-io/cni-plugin: defaultSubnetFile
		{"calico", AsksFile, "/var/lib/calico/nodename", "nodename_file"},                        // calico cni-plugin/internal/pkg/utils: DetermineNodename
	}
}

// AskedBy returns whom the loaded networks' plugins ask: what a running cniscope saw an agent answer at, what
// their configuration names, and else what they are known to ask.
func AskedBy(f *Facts) (all []Asked) {
	add := func(a Asked) {
		if !slices.ContainsFunc(all, func(b Asked) bool { return a.Kind == b.Kind && SamePlace(a.Address, b.Address) }) {
			all = append(all, a)
		}
	}
	for _, l := range f.CRI.Value.Loaded {
		for _, s := range f.Scope.Value.Recent.Agents {
			// An address of which redaction took a part cannot be asked.
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

// SamePlace reports whether two paths or addresses are the same: /var/run is a link to /run.
func SamePlace(a, b string) bool {
	short := func(s string) string {
		if strings.HasPrefix(s, "/var/run/") {
			return strings.TrimPrefix(s, "/var")
		}
		return s
	}
	return short(a) == short(b)
}

// AskedIn returns whom a plugin and its IPAM ask, by its configuration, and else by what is known of them.
// Of the configuration only what names a socket or a file goes on.
func AskedIn(plugin, ipam string, source []byte) (all []Asked) {
	var conf map[string]any
	if json.Unmarshal(source, &conf) != nil {
		conf = nil
	}
	found := places(conf, 0)
	for _, k := range known() {
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
		if p.Kind == AsksUnix && slices.ContainsFunc(all, func(a Asked) bool { return a.Kind == AsksUnix && SamePlace(a.Address, p.Address) }) {
			continue
		}
		p.Plugin = plugin
		all = append(all, p)
	}
	return all
}

// off: Calico reads the node's name from a file unless its configuration has it, or says that it need not.
func off(k asks, conf map[string]any) bool {
	_, named := valueOf(conf, "nodename")
	optional, _ := conf["nodename_file_optional"].(bool)
	return k.plugin == "calico" && (named || optional)
}

// valueOf is a string of a configuration, or of its IPAM.
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

// deepest is how many objects inside each other are looked into.
const deepest = 4

// places finds sockets and kubeconfigs among the values of a configuration, whatever their keys are called.
func places(conf map[string]any, depth int) (all []Asked) {
	keys := make([]string, 0, len(conf))
	for key := range conf {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
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
