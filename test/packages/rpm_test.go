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
	m.Runs("rpmdb --initdb")
	before := m.tree()
	m.Runs(rpm + "-i " + rpmFirst)
	first := m.active()
	m.Becomes("cniscope status", "kernel probe: attached", "NRI: registered")
	m.Says("cniscope status; systemctl is-enabled cniscope", "by a rpm package", "enabled", "cniscope v0.2.0, process "+first)
	m.traced(ctx, "web-0")

	m.Runs("sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.Runs(rpm + "-U " + rpmNewer)
	m.Becomes("cniscope status", "cniscope v0.2.1, process "+m.active())
	m.Says("cat "+options, "ratio = 0.99")
	m.Says(shown+"web-0", "bridge ADD")
	m.Runs("echo 'ratio = [' >>" + options)
	m.Says(rpm+"-U --oldpackage "+rpmFirst+" 2>&1", options+":")
	m.Becomes("cniscope status", "cniscope v0.2.1, process "+m.active())
	m.Runs("sed -i '$ d' " + options + "; systemctl restart cniscope")
	m.Becomes("cniscope status", "cniscope v0.2.0, process "+m.active())

	m.Runs(rpm + "-e cniscope")
	harness.Equal(t, len(m.cniscopes()), 0, "cniscopes run after the removal:")
	m.Says("cat "+options+".rpmsave", "ratio = 0.99")
	m.Runs("rm -r /etc/cniscope")
	m.same(before)
}

func TestTheRpmTakesOverTheService(t *testing.T) {
	m := boot(t)
	m.containerd("")
	m.Runs("rpmdb --initdb")
	before := m.tree()
	m.Runs(unpacked + "; /run/cniscope-tarball install; sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.Says(rpm+"-i "+rpmFirst, "the package takes over")
	service := m.active()
	if now := m.cniscopes(); len(now) != 1 || now[0] != service {
		t.Errorf("%s is the service; these run: %v", service, now)
	}
	m.Says("cat "+options+"; systemctl is-enabled cniscope; cniscope status", "ratio = 0.99", "enabled", "by a rpm package")
	m.Runs(rpm + "-e cniscope; rm -rf /etc/cniscope")
	m.same(before)
}
