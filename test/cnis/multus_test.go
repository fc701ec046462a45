//go:build linux

package cnis

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const multusDaemon = "multus-daemon"

// crawler is a plugin whose command lasts two seconds.
const crawler = `#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exit 0
sleep 2
echo '{"cniVersion":"0.3.1","interfaces":[],"ips":[]}'
`

// Multus' daemon runs the plugins of both networks, and updates the API server.
func TestMultus(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newMachine(t, "multus/multus-shim", "multus/multus-daemon")
	n.plugin("multus/multus-shim", "multus-shim")
	harness.Check(t, n.rig.AddPlugin("crawler", []byte(crawler)))
	n.conflist("10-bridge.conflist", "plain", rig.Conf{
		"type": "bridge", "bridge": "plain0", "isGateway": true, "ipam": rig.Conf{
			"type": "host-local", "dataDir": n.folder("leases"), "ranges": [][]rig.Conf{{{"subnet": podCIDR}}},
		},
	})
	n.observe()
	n.startMultus()
	n.network("crawl", `{"cniVersion":"0.3.1","name":"crawl","type":"crawler"}`)

	plain := n.call(n.add("plain").name)
	n.ordinary(plain)
	n.ran(plain, "bridge ADD", "host-local ADD")

	t.Log("the second network is slow")
	p := n.beginAs("two", n.describeAs(object{
		"name": "two", "namespace": "shop", "annotations": object{"k8s.v1.cni.cncf.io/networks": "crawl"},
	}))()
	harness.Check(t, p.err)
	two := n.call("two")
	n.ran(two, "bridge ADD", "crawler ADD")
	n.says(two, "slow_command|agent_command|many_commands", `^(1\.9|2)\S*s? of .*sleep`, `.`)

	for _, c := range []struct{ name, who, verdict string }{
		{"stopped-daemon", multusDaemon, `multus-daemon.*stopped`},
		{"stopped-server", "kube-apiserver", `kube-apiserver.*stopped`},
		{"stopped-store", "etcd", `etcd.*stopped`},
	} {
		t.Log(c.name)
		n.stall(c.name, c.who)
		n.says(n.call(c.name), "agent_stopped|behind_agent", `^(1\.[89]|2)\S*s? of .*`+c.verdict, `kill -CONT`)
	}
	n.ordinary(n.call(n.add("again").name))
}

// startMultus starts Multus' daemon like its pod, which puts its shim before the existing network.
func (n *node) startMultus() {
	n.Helper()
	n.define("multus/crds/*.yaml")
	n.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "network-attachment-definitions.k8s.cni.cncf.io"},
		"spec": object{
			"group": "k8s.cni.cncf.io", "scope": "Namespaced",
			"names": object{"plural": "network-attachment-definitions", "singular": "network-attachment-definition", "kind": "NetworkAttachmentDefinition"},
			"versions": []object{{"name": "v1", "served": true, "storage": true, "schema": object{
				"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	})
	// A pod's service account.
	account := "/run/secrets/kubernetes.io/serviceaccount"
	harness.Check(n.T, os.MkdirAll(account, 0o755))
	harness.Check(n.T, harness.CopyFile(filepath.Join(n.rig.Dir(), "control-plane", "apiserver.crt"), filepath.Join(account, "ca.crt")))
	harness.Check(n.T, os.WriteFile(filepath.Join(account, "token"), []byte(token), 0o600))
	config := n.json("multus.json", object{
		"cniVersion": "0.3.1", "logLevel": "verbose", "logToStderr": true, "socketDir": "/run/multus", "daemonSocketDir": "/run/multus",
		"cniConfigDir": n.rig.CNIConfDir(), "multusAutoconfigDir": n.rig.CNIConfDir(), "multusConfigFile": "auto", "binDir": n.rig.CNIBinDir(),
	})
	n.start(multusDaemon, func(context.Context) error {
		_, err := os.Stat(filepath.Join(n.rig.CNIConfDir(), "00-multus.conf"))
		return err
	},
		"/usr/bin/env", "KUBERNETES_SERVICE_HOST="+nodeAddress, "KUBERNETES_SERVICE_PORT=6443", "MULTUS_NODE_NAME="+nodeName,
		filepath.Join(n.tools, "multus", multusDaemon), "-config", config)
	n.networkReady()
}

func (n *node) network(name, config string) {
	n.Helper()
	n.create("/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions", object{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": object{"name": name}, "spec": object{"config": config},
	})
}

// stall sets up a pod while a program is stopped for two seconds.
func (n *node) stall(pod, who string) {
	n.Helper()
	uid := n.describe(pod, web)
	n.signal(who, unix.SIGSTOP)
	wait := n.beginAs(pod, uid)
	time.Sleep(2 * time.Second)
	n.signal(who, unix.SIGCONT)
	harness.Check(n.T, wait().err)
}
