package kubelet

import (
	"strings"
	"testing"
)

func TestTheServerOfAKubeconfig(t *testing.T) {
	for text, want := range map[string]string{
		"clusters:\n- cluster:\n    server: https://10.96.0.1:443\n  name: x\nusers:\n- user:\n    token: server\n": "10.96.0.1:443",
		"    server: \"https://[fd00::1]:6443\"\n": "[fd00::1]:6443",
		"- server: https://api.example\n":          "api.example:443",
		"{\"clusters\":[]}":                        "",
		`{"clusters":[{"cluster":{"certificate-authority-data":"QUI=","server":"https://10.0.0.1:6443"}}]}`: "10.0.0.1:6443",
		"clusters: [{cluster: {server: https://api.example}}]\n":                                            "api.example:443",
	} {
		if got := serverOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTheKubeconfigOfAKubelet(t *testing.T) {
	for line, want := range map[string]string{
		"kubelet --config=/c --kubeconfig=/etc/kubernetes/kubelet.conf --v=2": "/etc/kubernetes/kubelet.conf",
		"kubelet -kubeconfig /etc/k":                                          "/etc/k",
		"kubelet --bootstrap-kubeconfig=/b --kubeconfig /k":                   "/k",
		"kubelet kubeconfig=/not-a-flag":                                      "",
		"kubelet --kubeconfig":                                                "",
		"kubelet --kubeconfig=/first --kubeconfig=/last-one-wins":             "/last-one-wins",
	} {
		if got := flagIn(strings.Fields(line), "kubeconfig"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestTheDNSOfAKubelet(t *testing.T) {
	for config, want := range map[string]string{
		"authorization:\n  mode: Webhook\nclusterDNS:\n- 10.96.0.10\n- fd00::a\nclusterDomain: cluster.local\n": "10.96.0.10 cluster.local",
		"clusterDomain: corp.example\nclusterDNS:\n  - \"fd00:10:96::a\"\n":                                     "fd00:10:96::a corp.example",
		`{"clusterDNS":["172.20.0.10"],"kind":"KubeletConfiguration"}`:                                          "172.20.0.10 cluster.local",
		"{\n  \"clusterDNS\": [\n    \"10.96.0.10\"\n  ],\n  \"clusterDomain\": \"a.b\"\n}":                     "10.96.0.10 a.b",
		"clusterDNS: []\nclusterDomain: cluster.local\n":                                                        " ",
		"kind: KubeletConfiguration\n":                                                                          " ",
	} {
		if server, domain := dnsOf(config); server+" "+domain != want {
			t.Errorf("%q: %q %q, want %q", config, server, domain, want)
		}
	}
}
