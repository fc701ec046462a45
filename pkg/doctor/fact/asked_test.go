package fact

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// A plugin's configuration overrides its defaults.
func TestWhomAPluginAsks(t *testing.T) {
	tests := []struct {
		plugin, ipam, conf string
		want               []string
	}{
		{"cilium-cni", "", `{"type":"cilium-cni"}`, []string{"unix /var/run/cilium/cilium.sock"}},
		{"bridge", "host-local", `{"type":"bridge","ipam":{"type":"host-local","subnet":"10.0.0.0/24"}}`, nil},
		{"multus-shim", "", `{"type":"multus-shim","daemonSocketDir":"/srv/multus"}`, []string{"unix /srv/multus/multus.sock"}},
		{"macvlan", "dhcp", `{"ipam":{"type":"dhcp","daemonSocketPath":"/run/x/dhcp"}}`, []string{"unix /run/x/dhcp"}},
		{"kube-ovn", "", `{"server_socket":"/run/openvswitch/kube-ovn-daemon.sock"}`, []string{"unix /run/openvswitch/kube-ovn-daemon.sock"}},
		{"flannel", "", `{"subnetFile":"/srv/subnet.env"}`, []string{"file /srv/subnet.env"}},
		{
			"calico", "calico-ipam", `{"kubernetes":{"kubeconfig":"/etc/cni/net.d/calico-kubeconfig"},"policy":{"type":"k8s"}}`,
			[]string{"file /var/lib/calico/nodename", "kubeconfig /etc/cni/net.d/calico-kubeconfig"},
		},
		{"calico", "", `{"nodename":"a"}`, nil},
		{"theirs", "", `{"agent":{"endpoint":"unix:///run/theirs/a"},"password":"/run/x","log":"/var/log/x.log"}`, []string{"unix /run/theirs/a"}},
		{"broken", "", `{`, nil},
	}
	for _, test := range tests {
		var got []string
		for _, a := range AskedIn(test.plugin, test.ipam, []byte(test.conf)) {
			got = append(got, a.Kind+" "+a.Address)
		}
		harness.EqualSlices(t, got, test.want, test.plugin, test.conf)
	}
}

// First, if an agent answered and the network still has the plugin.
func TestWhomACniscopeSaw(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	f := &Facts{}
	f.CRI.Value.Loaded = []Loaded{{
		Network: event.Network{Name: "pods", Plugins: []event.Plugin{{Type: "cilium-cni"}, {Type: "theirs"}}},
		Asks:    AskedIn("cilium-cni", "", nil),
	}}
	f.Scope.Value.Recent.Agents = []control.Agent{
		{Network: "pods", Plugin: "cilium-cni", Kind: AsksUnix, Address: "/run/cilium/cilium.sock", Answered: at},
		{Network: "pods", Plugin: "theirs", Kind: AsksTCP, Address: "127.0.0.1:9", Answered: at},
		{Network: "pods", Plugin: "theirs", Kind: AsksUnix, Address: "/run/nscd", Failed: at},
		{Network: "pods", Plugin: "gone", Kind: AsksUnix, Address: "/run/gone", Answered: at},
		{Network: "other", Plugin: "theirs", Kind: AsksUnix, Address: "/run/other", Answered: at},
		{Network: "pods", Plugin: "theirs", Kind: AsksUnix, Address: "/run/‹hex 12›/a", Answered: at},
	}
	got := AskedBy(f)
	if len(got) != 2 || got[0].Address != "/run/cilium/cilium.sock" || !got[0].Seen || got[1].Address != "127.0.0.1:9" {
		t.Errorf("%+v", got)
	}
}
