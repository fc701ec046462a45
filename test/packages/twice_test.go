//go:build linux

package packages

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// one checks that exactly one cniscope observes the node, and returns its process.
func (m *machine) one(observes string) {
	m.Helper()
	m.Becomes("cniscope status", "process "+observes+",")
	m.Says("cat /run/cniscope/node.lock", "pid "+observes+",")
}

const unpacked = "dpkg-deb -x " + deb + " /run/tarball; cp /run/tarball/usr/bin/cniscope /run/cniscope-tarball; rm -r /run/tarball"

// After cniscope install, the package takes over the service, its options and containerd's.
func TestThePackageTakesOverTheService(t *testing.T) {
	m, ctx := boot(t), harness.Context(t)
	m.containerd("containerd-1.7")
	before := m.tree()
	m.Runs(unpacked)
	m.Runs("/run/cniscope-tarball install; sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.Says("ls /etc/containerd/conf.d", "90-cniscope.toml")
	m.Runs("systemctl restart containerd")
	first := m.active()

	m.Says(apt+deb+" </dev/null", "the package takes over", "removed   /usr/local/bin/cniscope", "removed   /etc/systemd/system/cniscope.service")
	second := m.active()
	if now := m.cniscopes(); len(now) != 1 || now[0] != second || second == first {
		t.Errorf("%s was the service, %s is; these run: %v", first, second, now)
	}
	m.Says("cniscope status; systemctl is-enabled cniscope; systemctl show -p FragmentPath cniscope; cat "+options,
		"by a deb package", "enabled", "=/lib/systemd/system/cniscope.service", "ratio = 0.99", "/etc/containerd/conf.d/90-cniscope.toml  as installed")
	m.Becomes("cniscope status", "NRI: registered")
	m.pod(ctx, "web-0")

	// The package's scripts and cniscope install do not change each other's files.
	m.Says("cniscope install", "brings cniscope's program, options and unit", "as it is  /etc/containerd/conf.d/90-cniscope.toml")
	m.Says("cniscope install --as plugin 2>&1 || :", "a deb package has installed cniscope here as a service")
	m.Says("cniscope uninstall", "removed   /etc/containerd/conf.d/90-cniscope.toml")
	m.Says("cniscope uninstall 2>&1 || :", "remove that")
	harness.Equal(t, m.active(), second, "process")
	m.Says("cniscope install", "new       /etc/containerd/conf.d/90-cniscope.toml")
	m.Says("apt-get purge -y -qq cniscope", "removed   /etc/containerd/conf.d/90-cniscope.toml", "containerd has to be restarted")
	m.same(before)
}

// The plugin that containerd started runs until it exits. The service waits for it, and logs that.
func TestThePackageTakesOverThePlugin(t *testing.T) {
	m, ctx := boot(t), harness.Context(t)
	m.containerd("")
	before := m.tree()
	m.Runs(unpacked + "; /run/cniscope-tarball install --as plugin; sed -i 's|^#dir = \"\"|dir = \"/var/lib/cniscope/spool\"|' " + options + "; systemctl restart containerd")
	m.Becomes("/usr/local/bin/cniscope status", "kernel probe: attached")
	plugin := m.cniscopes()[0]

	m.Says(apt+deb+" </dev/null", "removed   /opt/nri/plugins/90-cniscope", "process "+plugin, "started by containerd as its NRI plugin", "kill "+plugin)
	service := m.active()
	m.one(plugin)
	m.Says("cniscope status", "waiting for another cniscope to exit: pid "+plugin)
	m.pod(ctx, "web-0")
	m.Runs("systemctl restart containerd")
	m.one(service)
	m.Becomes("cniscope status", "kernel probe: attached", "NRI: registered")
	m.traced(ctx, "web-1")
	m.Runs("apt-get purge -y -qq cniscope")
	m.same(before)
}

// The pod of a DaemonSet shares the node's /run/cniscope. The second instance names the first.
func TestThePackageBesideTheDaemonSet(t *testing.T) {
	m := boot(t)
	m.Runs(unpacked)
	pod := "env KUBERNETES_SERVICE_HOST=10.96.0.1 /run/cniscope-tarball run"
	m.Runs("setsid " + pod + " >/run/pod.log 2>&1 & for i in $(seq 300); do grep -q 'observing CNI calls' /run/pod.log && exit 0; sleep 0.1; done; cat /run/pod.log; exit 1")
	others := m.cniscopes()
	if len(others) != 1 {
		t.Fatalf("these run: %v", others)
	}
	other := others[0]

	m.Says(apt+deb, "Another cniscope observes this node: process "+other, "in a pod")
	m.active()
	m.one(other)
	restarts := "systemctl show -p NRestarts --value cniscope"
	harness.Equal(t, m.Runs(restarts), "0\n", "systemd has started it times again")
	m.Runs(apt + newer)
	m.active()
	m.one(other)
	m.Says("apt-get purge -y -qq cniscope", "another cniscope observes this node", "in a pod", "/var/lib/cniscope stays")
	m.Says("cat /run/cniscope/node.lock", "pid "+other)

	m.Runs(apt + deb)
	service := m.active()
	m.Runs("kill " + other)
	m.one(service)
	// The other way round: the pod is second.
	m.Says(pod+" 2>&1 || echo exit code $?", fmt.Sprintf("already observes this node (pid %s, a service of systemd, /usr/bin/cniscope", service), "exit code 75")
	m.one(service)
}
