//go:build linux

package rig

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
)

// Network is one CNI configuration list, one attachment per pod.
type Network struct {
	// Name defaults to the rig's name and a number.
	Name string
	// CNIVersion is the configuration's version. From 1.1.0 on containerd runs STATUS at each status request.
	// Default: 1.0.0.
	CNIVersion string
	// Plugins is the chain.
	Plugins []Plugin
}

// Net is a network's unique bridge name and subnets.
type Net struct {
	Name    string
	Bridge  string
	Subnet  netip.Prefix
	Subnet6 netip.Prefix
	// DataDir is the IPAM directory.
	DataDir string
}

// Plugin returns a plugin's configuration.
type Plugin func(Net) Conf

// Conf is one plugin's configuration.
type Conf = map[string]any

// Use is a plugin with the given configuration.
func Use(conf Conf) Plugin { return func(Net) Conf { return conf } }

// Test is a plugin without configuration, by its file name.
func Test(name string) Plugin { return Use(Conf{"type": name}) }

// Bridge is the bridge plugin with host-local and ipMasq; more overrides keys.
func Bridge(more ...Conf) Plugin {
	return func(n Net) Conf {
		return merge(Conf{
			"type": "bridge", "bridge": n.Bridge,
			"isGateway": true, "ipMasq": true, "hairpinMode": true,
			"ipam": HostLocal(n.DataDir, n.Subnet),
		}, more)
	}
}

// DualStack is Bridge with an additional IPv6 address.
func DualStack(more ...Conf) Plugin {
	return func(n Net) Conf {
		conf := Bridge()(n)
		conf["ipam"] = HostLocal(n.DataDir, n.Subnet, n.Subnet6)
		return merge(conf, more)
	}
}

// HostLocal is the IPAM section for host-local: an address per subnet and a default route.
func HostLocal(dataDir string, subnets ...netip.Prefix) Conf {
	var ranges [][]Conf
	var routes []Conf
	for _, s := range subnets {
		ranges = append(ranges, []Conf{{"subnet": s.String()}})
		dst := "0.0.0.0/0"
		if s.Addr().Is6() {
			dst = "::/0"
		}
		routes = append(routes, Conf{"dst": dst})
	}
	return Conf{"type": "host-local", "dataDir": dataDir, "ranges": ranges, "routes": routes}
}

// Portmap maps the HostPorts of a pod.
func Portmap() Plugin {
	return Use(Conf{"type": "portmap", "capabilities": Conf{"portMappings": true}})
}

// Firewall allows the pod's traffic in the host's forward chain.
func Firewall() Plugin { return Use(Conf{"type": "firewall"}) }

// Tuning sets sysctls of the pod's network namespace.
func Tuning(sysctl map[string]string) Plugin {
	return Use(Conf{"type": "tuning", "sysctl": sysctl})
}

// Script is a chained plugin as a shell script: it runs body with the configuration in $conf, then ADD returns the
// previous result. It runs no programs itself. `fail CODE TEXT` returns a CNI error. VERSION, which CRI-O requests
// first, skips body.
func Script(body string) []byte {
	return []byte(`#!/bin/sh
read -r conf || :
[ "$CNI_COMMAND" = VERSION ] && { echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}'; exit 0; }
fail() { printf '{"cniVersion":"1.0.0","code":%s,"msg":"%s"}\n' "$1" "$2"; exit 1; }
` + body + `
[ "$CNI_COMMAND" = ADD ] || exit 0
# libcni writes keys in order: prevResult, then at most runtimeConfig, then type.
result=${conf#*'"prevResult":'}
result=${result%',"type":'*}
printf '%s\n' "${result%',"runtimeConfig":'*}"
`)
}

func merge(conf Conf, more []Conf) Conf {
	for _, m := range more {
		maps.Copy(conf, m)
	}
	return conf
}

// writeNetworks writes another file last: containerd does not reload on a rename alone.
func writeNetworks(dir, staging string, networks []Network, nets []Net) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.conflist"))
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for i, network := range networks {
		list := Conf{"cniVersion": network.CNIVersion, "name": nets[i].Name}
		if network.CNIVersion == "" {
			list["cniVersion"] = "1.0.0"
		}
		chain := []Conf{}
		for _, plugin := range network.Plugins {
			chain = append(chain, plugin(nets[i]))
		}
		list["plugins"] = chain
		text, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			return fmt.Errorf("network %s: %w", nets[i].Name, err)
		}
		name := fmt.Sprintf("%02d-%s.conflist", 10+i, nets[i].Name)
		keep[filepath.Join(dir, name)] = true
		part := filepath.Join(staging, name)
		if err := os.WriteFile(part, text, 0o644); err != nil {
			return fmt.Errorf("write the network's configuration: %w", err)
		}
		if err := os.Rename(part, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("put the network's configuration in place: %w", err)
		}
	}
	for _, path := range old {
		if !keep[path] {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove an old network: %w", err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "reload"), []byte("\n"), 0o644); err != nil {
		return fmt.Errorf("have containerd reload its networks: %w", err)
	}
	return nil
}

// loadedNetworks is nil once containerd's loaded networks equal dir's files.
func loadedNetworks(dir, account string) error {
	var loaded struct {
		Networks []struct{ Config struct{ Name, Source string } }
	}
	if err := json.Unmarshal([]byte(account), &loaded); err != nil {
		return fmt.Errorf("read what containerd loaded: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.conflist"))
	if err != nil {
		return err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read a network: %w", err)
		}
		found := false
		for _, n := range loaded.Networks {
			found = found || n.Config.Source == string(text)
		}
		if !found {
			return fmt.Errorf("containerd has not loaded %s yet", path)
		}
	}
	return nil
}
