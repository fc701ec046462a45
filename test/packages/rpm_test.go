//go:build linux

package packages

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	rpm      = "rpm --force-debian --nodeps "
	rpmFirst = "/run/packages/v0.2.0/cniscope-0.2.0.x86_64.rpm"
	rpmNewer = "/run/packages/v0.2.1/cniscope-0.2.1.x86_64.rpm"
)

func TestInstalledUpgradedAndErasedByRpm(t *testing.T) {
	m, ctx := boot(t), harness.Context(t)
	m.containerd("")
	m.run("rpmdb --initdb")
	before := m.tree()
	m.run(rpm + "-i " + rpmFirst)
	first := m.active()
	m.becomes("cniscope status", "kernel probe: attached")
	m.becomes("cniscope status", "NRI: registered")
	m.says("cniscope status; systemctl is-enabled cniscope", "by a rpm package", "enabled", "cniscope v0.2.0, process "+first)
	m.pod(ctx, "web-0")
	m.becomes(shown+"web-0", "bridge ADD")

	m.run("sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.run(rpm + "-U " + rpmNewer)
	m.becomes("cniscope status", "cniscope v0.2.1, process "+m.active())
	m.says("cat "+options, "ratio = 0.99")
	m.says(shown+"web-0", "bridge ADD")
	m.run("echo 'ratio = [' >>" + options)
	m.says(rpm+"-U --oldpackage "+rpmFirst+" 2>&1", options+":")
	m.becomes("cniscope status", "cniscope v0.2.1, process "+m.active())
	m.run("sed -i '$ d' " + options + "; systemctl restart cniscope")
	m.becomes("cniscope status", "cniscope v0.2.0, process "+m.active())

	m.run(rpm + "-e cniscope")
	if left := m.cniscopes(); len(left) > 0 {
		t.Errorf("it was erased and still runs: %v", left)
	}
	m.says("cat "+options+".rpmsave", "ratio = 0.99")
	m.run("rm -r /etc/cniscope")
	m.same(before)
}

func TestTheRpmTakesOverTheService(t *testing.T) {
	m := boot(t)
	m.containerd("")
	m.run("rpmdb --initdb")
	before := m.tree()
	m.run(unpacked + "; /run/cniscope-tarball install; sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.says(rpm+"-i "+rpmFirst, "the package takes over")
	service := m.active()
	if now := m.cniscopes(); len(now) != 1 || now[0] != service {
		t.Errorf("%s is the service; these run: %v", service, now)
	}
	m.says("cat "+options+"; systemctl is-enabled cniscope; cniscope status", "ratio = 0.99", "enabled", "by a rpm package")
	m.run(rpm + "-e cniscope; rm -rf /etc/cniscope")
	m.same(before)
}
