//go:build linux

package rig

import (
	"log/slog"
	"time"
)

// Options say what a rig should be like. The zero value is containerd as it
// comes, NRI on, tracing off, one network of bridge (host-local, ipMasq) and
// portmap.
type Options struct {
	// Tools is the folder `make tools` fills. Default: test/tools/bin of the
	// repository the working directory is in.
	Tools string
	// Containerd is a folder with containerd, containerd-shim-runc-v2 and ctr,
	// for another version than the one of Tools.
	Containerd string
	// CRIO runs CRI-O instead of containerd, with CNI, NRI and the pause image at the same
	// places. What is said of containerd alone (DropIns, Serial, OTLP, MetricsURL) is not for it.
	CRIO bool
	// Networks are what a pod is attached to, besides lo. Default: Bridge and
	// Portmap. A slice that is empty but not nil leaves the node without network.
	Networks []Network
	// Serial has containerd set up networks one after another.
	Serial bool
	// Plugins are more files for the CNI bin folder: name and content.
	Plugins map[string][]byte
	// NRIPlugins are files for the folder of pre-installed NRI plugins, by their
	// name there (`10-cniscope`), each copied from the path given.
	NRIPlugins map[string]string
	// NRIPluginConfig are files for the folder of their configuration.
	NRIPluginConfig map[string][]byte
	// Usual has what runs in containerd's mount namespace find the rig's folders at
	// the usual places of a node: its NRI socket in /run/nri, its networks in
	// /etc/cni/net.d, and a folder of the rig's at /run/cniscope.
	Usual bool
	// Covers are more folders of the host that are covered by empty ones of the rig's (see
	// Rig.Covered), for what runs in containerd's mount namespace: what is installed there
	// goes with the rig.
	Covers []string
	// HostMounts runs containerd in the mount namespace of whoever starts the rig, and covers
	// nothing of it: only there are plugins believed that a hook of a container runs.
	HostMounts bool
	// NRIDisabled switches NRI off.
	NRIDisabled bool
	// OTLP is where containerd sends its own spans by gRPC, `http://127.0.0.1:4317`.
	// Empty: tracing is off.
	OTLP string
	// DropIns are more containerd configuration: file name and TOML text, imported
	// in the order of their names.
	DropIns map[string]string
	// Env is added to containerd's environment, `NAME=value`. CNI plugins and
	// shims inherit it.
	Env []string
	// Nice is the priority of containerd and of all that it starts, as of nice(1): with -20 a plugin does not wait for a
	// CPU, however busy the machine is. Default: that of the caller.
	Nice int
	// LogLevel is containerd's: trace, debug, info, warn, error. Default: info.
	LogLevel string
	// Ready bounds how long containerd may take to become ready. Default: a minute.
	Ready time.Duration
	// Log takes what the rig does and what it swept. Default: nothing is said.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Networks == nil {
		o.Networks = []Network{{Plugins: []Plugin{Bridge(), Portmap()}}}
	}
	if o.LogLevel == "" {
		o.LogLevel = "info"
	}
	if o.Ready == 0 {
		o.Ready = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
