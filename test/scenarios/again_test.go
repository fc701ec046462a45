//go:build linux

package scenarios

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const attached = "GetNetworkDelegates: failed getting the delegate: getKubernetesDelegate: cannot find a network-attachment-definition "

func init() {
	doings["ADD unauthorized"] = failing("Unauthorized")
	doings["ADD comma"] = failing(attached + "() in namespace (shop): resource name may not be empty")
	doings["ADD definition"] = failing(attached + "(macvlan-conf) in namespace (shop): not found")
}

// furtherReports fail in the real bridge and host-local, or in a report's words; each stands above its twin.
func furtherReports() []incident {
	noMAC := func(s *scene) func() {
		name := s.rig.Networks()[0].Bridge
		_ = exec.Command("ip", "link", "delete", name).Run()
		s.run("ip", "link", "add", name, "type", "bridge")
		s.run("ip", "link", "add", "cniscope-port", "type", "veth", "peer", "name", "cniscope-peer")
		s.run("ip", "link", "set", "cniscope-port", "master", name)
		s.run("ip", "link", "delete", "cniscope-port") // the kernel takes the bridge's address with its last port
		return func() {}
	}
	leases := func(conf rig.Conf) []rig.Plugin {
		conf["type"] = "host-local"
		return []rig.Plugin{rig.Bridge(rig.Conf{"ipam": conf})}
	}
	all := []incident{{
		id: "no-ranges", chain: leases(rig.Conf{"ranges": []string{}}), says: []string{"plugin host-local failed", "no IP ranges specified"}, remedy: "a podCIDR", never: "shrink",
	}, {
		id: "empty-subnet", chain: leases(rig.Conf{"subnet": ""}), says: []string{"invalid CIDR address"}, remedy: "a podCIDR", never: "shrink",
	}, {
		id: "subnet-twin", chain: leases(rig.Conf{"subnet": "10.1.0.1"}), says: []string{"invalid CIDR address: 10.1.0.1"}, never: "podCIDR",
	}, {
		id: "bridge-without-mac", chain: []rig.Plugin{rig.Bridge()}, before: noMAC, says: []string{"could not set bridge's mac: invalid argument"}, remedy: "the ADD before", never: "drain",
	}, {
		id: "result-without-address", chain: []rig.Plugin{rig.Bridge(rig.Conf{"ipam": rig.Conf{}, "isGateway": false, "ipMasq": false})},
		says: []string{"the result of plugin bridge has no IP address"}, remedy: "set ipam", never: "kubectl describe",
	}, {
		id: "stale-token", chain: does("linkerd-cni", "unauthorized"), says: []string{"Unauthorized"}, remedy: "take linkerd-cni out", never: "istio",
	}, {
		id: "token-twin", chain: does("contiv", "unauthorized"), says: []string{"Unauthorized"}, never: "linkerd",
	}, {
		id: "empty-name", chain: does("multus", "comma"), says: []string{"resource name may not be empty"}, remedy: "in which a name is empty", never: "add the NetworkAttachmentDefinition",
	}, {
		id: "name-twin", chain: does("multus", "definition"), says: []string{"(macvlan-conf)"}, remedy: "add the NetworkAttachmentDefinition", never: "is empty",
	}}
	for i := range all {
		all[i].fails, all[i].cause = true, "plugin_error"
	}
	return all
}

// A DEL that does not find what it deletes names what makes the next one succeed.
func TestADELWhoseRuleIsGone(t *testing.T) {
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"ruled": rig.Script(`if [ "$CNI_COMMAND" = DEL ]; then
			ip rule del to 10.9.9.9 table 4711 2>/dev/null || fail 999 "failed to del rule table 4711: no such file or directory"; fi`),
	}}, slowly)
	s.network("pods", rig.Bridge(), rig.Test("ruled"))
	id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "pod-1"}))(t)
	if s.rig.StopPod(s.ctx, id) == nil {
		t.Fatal("there was a rule")
	}
	do := s.deleted("pod-1").Attrs["cniscope.remedy"]
	harness.Says(t, do, "run ip rule add to ADDRESS table 4711 with")
	command, _, _ := strings.Cut(strings.Replace(strings.TrimPrefix(do, "run "), "ADDRESS", "10.9.9.9", 1), " with")
	s.run(strings.Fields(command)...)
	harness.Check(t, s.rig.StopPod(s.ctx, id))
}

// A sandbox image that the node lacks and cannot pull is named, but not if another step of the sandbox fails.
func TestANodeWithoutItsSandboxImage(t *testing.T) {
	const image = "version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = \"127.0.6.1:1/pause:3.5\"\n"
	for _, lacks := range []bool{true, false} {
		t.Run(strconv.FormatBool(lacks), func(t *testing.T) {
			o, profile := rig.Options{DropIns: map[string]string{"pause.toml": image}}, (*cri.SecurityProfile)(nil)
			if !lacks {
				o, profile = rig.Options{}, &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost, LocalhostRef: "/nowhere"}
			}
			s := set(t, o, slowly)
			s.network("pods", rig.Bridge())
			call := s.add(rig.PodOptions{Config: func(c *cri.PodSandboxConfig) { c.Linux.SecurityContext.Seccomp = profile }}, true)
			verdict, do := call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"]
			if lacks != strings.Contains(verdict, "may lack the runtime's sandbox image") || lacks != strings.Contains(do, "images import") ||
				!strings.Contains(verdict, "every plugin succeeded") {
				t.Errorf("%s\n → %s", verdict, do)
			}
		})
	}
}
