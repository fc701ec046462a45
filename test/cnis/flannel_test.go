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
)

const flanneld = "flanneld"

// A stopped flanneld affects no pod, one that never ran all: the plugin reads its file.
func TestFlannel(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newMachine(t, "flannel/flannel", "flannel-cni/flannel")
	n.plugin("flannel-cni/flannel", "flannel")
	const subnets = "/run/flannel/subnet.env"
	leases := n.folder("leases")
	n.conflist("10-flannel.conflist", "cbr0", object{
		"type": "flannel", "dataDir": n.folder("flannel-data"),
		"delegate": object{"hairpinMode": true, "isDefaultGateway": true},
		"ipam":     object{"dataDir": leases},
	}, object{"type": "portmap", "capabilities": object{"portMappings": true}})
	n.observe()
	n.networkReady()

	t.Log("flanneld did not run yet")
	p := n.begin("early", web)()
	if p.err == nil {
		t.Error("the pod came up without flanneld")
	}
	n.says(n.call("early"), "plugin_error|missing", `flannel.*subnet\.env: no such file`, ``)

	config := n.json("net-conf.json", object{"Network": clusterCIDR, "Backend": object{"Type": "host-gw"}})
	n.start(flanneld, func(context.Context) error {
		_, err := os.Stat(subnets)
		return err
	},
		"/usr/bin/env", "NODE_NAME="+nodeName, filepath.Join(n.tools, "flannel", "flannel"),
		"--kube-subnet-mgr", "--kubeconfig-file="+n.file("kubeconfig", kubeconfig(apiServer)), "--net-config-path="+config,
		"--iface=eth0")
	c := n.call(n.add("plain").name)
	n.ordinary(c)
	n.ran(c, "flannel ADD", "bridge ADD", "host-local ADD", "portmap ADD")

	t.Log("flanneld stands still")
	n.signal(flanneld, unix.SIGSTOP)
	n.ordinary(n.call(n.add("beside").name))
	n.signal(flanneld, unix.SIGCONT)

	t.Log("host-local's lock is held")
	file := harness.Must(os.OpenFile(filepath.Join(leases, "cbr0", "lock"), os.O_RDWR, 0))(t)
	harness.Check(t, unix.Flock(int(file.Fd()), unix.LOCK_EX))
	time.AfterFunc(2*time.Second, func() { file.Close() })
	n.says(n.call(n.add("locked").name), "file_lock", `^(1\.9|2)\S*s? of .*wait(ing|ed) for file lock .*/cbr0/lock`, `.`)
}
