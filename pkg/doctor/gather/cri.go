package gather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

const loopback = "cni-loopback"

func askCRI(ctx context.Context, runtime cri.RuntimeServiceClient, r fact.Runtime, o fact.Options) (c fact.CRI,
	err error,
) {
	answer, err := runtime.Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return c, status.Error(status.Code(err), fact.Foreign(status.Convert(err).Message()))
	}
	said := func(s string) string { return fact.Foreign(s, strings.Split(o.ConfDir, "/")...) }
	for _, condition := range answer.GetStatus().GetConditions() {
		switch condition.GetType() {
		case cri.RuntimeReady:
			c.Ready, c.ReadyReason = condition.GetStatus(), said(condition.GetReason()+": "+condition.GetMessage())
		case cri.NetworkReady:
			c.Network, c.NetworkReason = condition.GetStatus(), said(condition.GetReason()+": "+condition.GetMessage())
		}
	}
	if !r.Containerd() {
		c.MaxConf, c.ConfDir, c.BinDirs = 1, o.ConfDir, []string{"/opt/cni/bin"}
		return c, readFolders(ctx, r, o, &c)
	}
	if last := answer.GetInfo()["lastCNILoadStatus"]; last != "OK" {
		c.LastLoad = said(last)
	}
	raw := answer.GetInfo()["cniconfig"]
	if raw == "" {
		return c, errors.New("its status does not say which networks it has loaded")
	}
	c.Told = true
	return c, parseLoaded(&c, []byte(raw))
}

type cniConfig struct {
	PluginDirs       []string
	PluginConfDir    string
	PluginMaxConfNum int
	Networks         []struct {
		Config struct {
			Name, CNIVersion, Source string
			Plugins                  []struct{ Source string }
		}
	}
}

type pluginConf struct {
	Type       string
	Bridge     string
	Master     string
	Kubeconfig string
	Kubernetes struct{ Kubeconfig string }
	IPAM       struct {
		Type, Subnet, DataDir string
		Ranges                [][]struct{ Subnet string }
	}
	Delegate struct{ Type, Bridge string }
}

func parseLoaded(c *fact.CRI, raw []byte) error {
	var config cniConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("cannot read the networks that it has loaded: %w", err)
	}
	c.ConfDir, c.BinDirs, c.MaxConf = config.PluginConfDir, config.PluginDirs, config.PluginMaxConfNum
	for _, n := range config.Networks {
		if n.Config.Name == loopback {
			c.NeedsLoopback = true
			continue
		}
		l := fact.Loaded{Network: event.Network{
			Name:       fact.Clean(n.Config.Name),
			CNIVersion: fact.Clean(n.Config.CNIVersion),
		}, Digest: digest([]byte(n.Config.Source))}
		for _, p := range n.Config.Plugins {
			addPlugin(&l, []byte(p.Source))
		}
		c.Loaded = append(c.Loaded, l)
	}
	return nil
}

func addPlugin(l *fact.Loaded, source []byte) {
	var p pluginConf
	if json.Unmarshal(source, &p) != nil { // a key of another type; the others are set
		var t struct{ Type string }
		_ = json.Unmarshal(source, &t) // libcni requires a type
		p.Type = t.Type
	}
	l.Plugins = append(l.Plugins, event.Plugin{Type: fact.Clean(p.Type), IPAM: fact.Clean(p.IPAM.Type)})
	l.Asks = append(l.Asks, fact.AskedIn(p.Type, p.IPAM.Type, source)...)
	if p.Bridge != "" {
		l.Bridges = append(l.Bridges, p.Bridge)
	}
	if file := cmp.Or(p.Kubeconfig, p.Kubernetes.Kubeconfig); file != "" {
		l.Kubeconfigs = append(l.Kubeconfigs, file)
	}
	if p.Master != "" {
		l.Masters = append(l.Masters, p.Master)
	}
	if p.Type == "flannel" { // delegates to bridge with host-local by default
		l.Delegates = append(l.Delegates, fact.Clean(cmp.Or(p.Delegate.Type, "bridge")), "host-local")
	}
	if p.IPAM.Type != "host-local" {
		return
	}
	if p.IPAM.DataDir != "" {
		l.DataDirs = append(l.DataDirs, p.IPAM.DataDir)
	}
	if slices.Contains(fact.OnLink, p.Type) {
		return
	}
	subnets := []string{p.IPAM.Subnet}
	for _, set := range p.IPAM.Ranges {
		for _, r := range set {
			subnets = append(subnets, r.Subnet)
		}
	}
	for _, s := range subnets {
		if prefix, err := netip.ParsePrefix(s); err == nil {
			l.Subnets = append(l.Subnets, prefix.Masked())
		}
	}
}
