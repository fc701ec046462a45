//go:build linux

package packages

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	apt     = "apt-get install -y -qq --allow-downgrades "
	deb     = "/run/packages/v0.2.0/cniscope_0.2.0_amd64.deb"
	newer   = "/run/packages/v0.2.1/cniscope_0.2.1_amd64.deb"
	options = "/etc/cniscope/cniscope.toml"
	shown   = "cniscope show --last 1h --pod shop/"
)

// The commands are those of the README.
func TestInstalledUpgradedAndPurged(t *testing.T) {
	m, ctx := boot(t), harness.Context(t)
	m.containerd("")
	before := m.tree()

	first := m.installed(ctx, deb, "v0.2.0")
	m.Runs("sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.Runs(apt + newer + " </dev/null")
	second := m.active()
	if second == first {
		t.Error("the older program still runs")
	}
	m.Becomes("cniscope status", "cniscope v0.2.1, process "+second)
	m.Says("cat "+options, "ratio = 0.99")
	m.Says("cniscope config print "+options, "ratio = 0.99")
	m.Says(shown+"web-0", "bridge ADD")

	m.Runs(apt + deb)
	m.Becomes("cniscope status", "cniscope v0.2.0, process "+m.active())
	m.Says("cat "+options, "ratio = 0.99")

	m.Runs("apt-get remove -y -qq cniscope")
	harness.Equal(t, len(m.cniscopes()), 0, "cniscopes run after the removal:")
	m.Says("cat "+options+"; ls /var/lib/cniscope/spool", "ratio = 0.99", ".segment")
	m.Runs(apt + newer + " </dev/null")
	m.active()
	m.Says("cniscope config print "+options, "ratio = 0.99")
	m.Becomes(shown+"web-0", "bridge ADD")

	m.Runs("apt-get purge -y -qq cniscope")
	harness.Equal(t, len(m.cniscopes()), 0, "cniscopes run after the removal:")
	m.same(before)
	m.Says("ls -d /run/cniscope 2>&1 || :", "No such file")
	m.pod(ctx, "web-1")
}

// installed installs a deb until a pod is traced, and returns the process of the service.
func (m *machine) installed(ctx context.Context, deb, version string) (process string) {
	m.Helper()
	m.Runs(apt + deb)
	process = m.active()
	m.Becomes("cniscope status", "kernel probe: attached", "NRI: registered")
	m.Says("cniscope status", "as service, by a deb package", "cniscope "+version+", process "+process+", a service of systemd, /usr/bin/cniscope")
	m.traced(ctx, "web-0")
	m.Says("dpkg --verify cniscope; systemctl is-enabled cniscope; cniscope --version", "enabled", version)
	return process
}

// `make test-install` names what `make release` has written.
func TestTheReleaseIsInstalledByApt(t *testing.T) {
	if release == "" {
		t.Skip("make test-install names a release")
	}
	m, ctx, version := boot(t), harness.Context(t), filepath.Base(release)
	m.containerd("")
	before := m.tree()
	m.installed(ctx, "/run/packages/"+version+"/cniscope_"+version[1:]+"_"+runtime.GOARCH+".deb", version)
	m.Runs("apt-get purge -y -qq cniscope")
	m.same(before)
}

// Neither the installation nor the removal waits for containerd.
func TestInstalledWithoutContainerd(t *testing.T) {
	m := boot(t)
	before := m.tree()
	m.Runs(apt + deb)
	m.Becomes("cniscope status || :", "kernel probe: attached")
	m.containerd("")
	m.Becomes("cniscope status", "NRI: registered")
	m.Runs("systemctl stop containerd; apt-get purge -y -qq cniscope")
	m.Runs("systemctl disable containerd 2>/dev/null; rm -r /etc/systemd/system/containerd.service /etc/containerd/config.toml /etc/cni/net.d/10-pods.conflist; rm -rf /var/lib/cni /var/lib/containerd /var/lib/nri /opt/containerd")
	m.same(before)
}

// With wrong options, the running service goes on, and the upgrade reports the error and its place.
func TestUpgradedWithOptionsThatAreWrong(t *testing.T) {
	m := boot(t)
	m.Runs(apt + deb)
	first := m.active()
	m.Runs("echo 'ratio = [' >>" + options)
	m.Says(apt+newer+" 2>&1", options+":", "systemctl restart cniscope")
	harness.Equal(t, m.active(), first, "process")
	m.Says("dpkg -s cniscope", "Version: 0.2.1", "Status: install ok installed")
	m.Runs("sed -i '$ d' " + options + "; systemctl restart cniscope")
	m.Becomes("cniscope status", "cniscope v0.2.1")
}

// Options from before the installation are the operator's, so dpkg does not ask about them.
func TestOptionsThatWereThereBefore(t *testing.T) {
	m := boot(t)
	m.Write(options, "[sampling]\nratio = 0.25\n")
	before := m.tree()
	m.Runs(apt + deb + " </dev/null")
	m.active()
	m.Says("cniscope config print "+options, "ratio = 0.25")
	m.Runs(apt + newer + " </dev/null")
	m.Says("cniscope config print "+options+"; ls "+options+"*", "ratio = 0.25")
	m.Runs("apt-get purge -y -qq cniscope")
	want := strings.Builder{}
	for l := range strings.Lines(before) {
		if !strings.Contains(l, "etc/cniscope") {
			want.WriteString(l)
		}
	}
	m.same(want.String())
}

// A purge removes a spool and a baseline elsewhere, but no other file of their directories.
func TestASpoolElsewhere(t *testing.T) {
	m, ctx := boot(t), harness.Context(t)
	m.containerd("")
	m.Runs("mkdir -p /srv/alone /srv/shared; chmod 700 /srv/*; echo mine >/srv/shared/file")
	before := m.tree()
	for dir, baseline := range map[string]string{"/srv/alone/spool": "", "/srv/shared": "/srv/alone/learned"} {
		m.Runs(apt + deb)
		m.Write("/run/systemd/system/cniscope.service.d/spool.conf", "[Service]\nReadWritePaths=/srv\n")
		m.Runs("sed -i 's|^dir = .*|dir = \"" + dir + "\"|; s|^#baseline = .*|baseline_dir = \"" + baseline + "\"|' " + options + "; systemctl daemon-reload; systemctl restart cniscope")
		m.active()
		m.Becomes("cniscope status", "kernel probe: attached", "NRI: registered")
		m.traced(ctx, "web-0")
		m.Says("ls "+dir, ".segment", "cursor")
		m.Runs("apt-get purge -y -qq cniscope")
		m.same(before)
	}
}

// dpkg resumes after a kill.
func TestAnUpgradeThatIsInterrupted(t *testing.T) {
	m := boot(t)
	m.Runs(apt + deb)
	m.Runs("sed -i 's/^#ratio = 1.0/ratio = 0.99/' " + options)
	m.active()
	for _, at := range []string{"unpack", "configure"} {
		// The package is killed when its script begins.
		script := map[string]string{"unpack": "preinst", "configure": "postinst"}[at]
		m.Runs("cp -r /run/packages/v0.2.1 /tmp/again; cd /tmp/again; dpkg-deb -R cniscope_0.2.1_amd64.deb tree; sed -i '2i kill -9 $PPID; kill -9 $$' tree/DEBIAN/" + script + "; dpkg-deb -Znone -b tree broken.deb >/dev/null")
		if out, err := m.Try("dpkg -i /tmp/again/broken.deb"); err == nil {
			t.Fatalf("it was not killed:\n%s", out)
		}
		harness.Equal(t, len(m.cniscopes()), 1, "cniscopes run while it", at)
		if at == "configure" {
			m.Runs("sed -i '2d' /var/lib/dpkg/info/cniscope.postinst; dpkg --configure -a </dev/null")
		} else {
			m.Runs("dpkg --configure -a </dev/null; " + apt + newer + " </dev/null")
		}
		m.Becomes("cniscope status", "cniscope v0.2.1")
		m.Says("cniscope config print "+options+"; dpkg --audit", "ratio = 0.99")
		m.Runs("rm -r /tmp/again; " + apt + deb)
	}
	m.Runs("apt-get purge -y -qq cniscope")
}
