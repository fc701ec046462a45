//go:build linux

package rig

import (
	"log/slog"
	"time"
)

// Options configure a rig. The zero value is containerd with NRI, without tracing, with one network of bridge
// (host-local, ipMasq) and portmap.
type Options struct {
	// Tools is the directory of `make tools`. Default: test/tools/bin of the working directory's repository.
	Tools      string
	Containerd string
	Runc       string
	// CRIO runs CRI-O instead of containerd. DropIns, OTLP and MetricsURL do not apply.
	CRIO bool
	// Networks are a pod's attachments beside lo. Default: Bridge and Portmap. An empty non-nil slice means no
	// network.
	Networks []Network
	Plugins  map[string][]byte
	// NRIPlugins are pre-installed NRI plugins by name (`10-cniscope`), copied from a path.
	NRIPlugins map[string]string
	// NRIPluginConfig are their configuration files.
	NRIPluginConfig map[string][]byte
	// Usual shows the rig's directories at a node's usual places in containerd's mount namespace: /run/nri,
	// /etc/cni/net.d and /run/cniscope.
	Usual bool
	// Covers are further host directories covered by empty ones (see Rig.Covered), for installations.
	Covers []string
	// HostMounts runs containerd in the caller's mount namespace without covers: only there plugins run by a
	// container's hook are trusted.
	HostMounts  bool
	NRIDisabled bool
	// OTLP is containerd's export endpoint over gRPC, `http://127.0.0.1:4317`; empty for none.
	OTLP string
	// DropIns are further containerd configuration files, imported in order of name.
	DropIns map[string]string
	// Env is added to containerd's environment, which CNI plugins and shims inherit.
	Env []string
	// Nice is the priority of containerd and its children (nice(1)); with -20 plugins do not wait for a CPU.
	// Default: the caller's.
	Nice int
	// Ready bounds containerd's start. Default: a minute.
	Ready time.Duration
	Log   *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Networks == nil {
		o.Networks = []Network{{Plugins: []Plugin{Bridge(), Portmap()}}}
	}
	if o.Ready == 0 {
		o.Ready = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
