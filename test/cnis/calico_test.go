//go:build linux

package cnis

import (
	"testing"
)

// Calico's plugins use no agent, but the API server and etcd.
func TestCalico(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newMachine(t, "calico/calico")
	n.plugin("calico/calico", "calico")
	n.plugin("calico/calico", "calico-ipam")
	n.define("calico/crds/*.yaml")
	for kind, o := range map[string]object{
		"clusterinformations": {"kind": "ClusterInformation", "metadata": object{"name": "default"}, "spec": object{"datastoreReady": true, "clusterGUID": "rig"}},
		"ippools": {"kind": "IPPool", "metadata": object{"name": "pods"}, "spec": object{
			"cidr": clusterCIDR, "blockSize": 26, "ipipMode": "Never", "vxlanMode": "Never", "nodeSelector": "all()",
			"allowedUses": []string{"Workload"},
		}},
	} {
		o["apiVersion"] = "crd.projectcalico.org/v1"
		n.create("/apis/crd.projectcalico.org/v1/"+kind, o)
	}
	n.conflist("10-calico.conflist", "k8s-pod-network", object{
		"type": "calico", "datastore_type": "kubernetes", "nodename": nodeName, "nodename_file_optional": true, "log_level": "info",
		"log_file_path": n.folder("calico") + "/cni.log", "mtu": 1450, "policy": object{"type": "k8s"},
		"ipam":       object{"type": "calico-ipam"},
		"kubernetes": object{"kubeconfig": n.file("kubeconfig", kubeconfig(apiServer))},
	})
	n.observe()
	n.networkReady()

	c := n.call(n.add("plain").name)
	n.ordinary(c)
	n.ran(c, "calico ADD", "calico-ipam ADD")
	t.Log("the API server stands still: it does not even accept")
	n.stall("stopped-server", "kube-apiserver")
	n.says(n.call("stopped-server"), "agent_stopped|api_server", `^(1\.[89]|2)\S*s? of .*plugin calico waited for .*127\.0\.0\.1:6443`, `.`)

	t.Log("etcd stands still")
	n.stall("stopped-etcd", "etcd")
	n.says(n.call("stopped-etcd"), "behind_agent", `^(1\.[89]|2)\S*s? of .*plugin calico waited for etcd \(stopped.*, through kube-apiserver`, `kill -CONT`)
	n.ordinary(n.call(n.add("again").name))
}
