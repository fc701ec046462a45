//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// The service starts, restarts after an upgrade, and is restored if a change fails.
func TestInstalledWithSystemd(t *testing.T) {
	b := boot(t)
	before := b.files()

	b.does("install --containerd-version 2.4", "new       /usr/local/bin/cniscope")
	first := b.active("cniscope")
	b.Becomes(b.program+" status", "kernel probe: attached")
	b.does("status", "cniscope.service is active")
	b.does("install", "as it is  /usr/local/bin/cniscope")
	harness.Equal(t, b.active("cniscope"), first, "the process, though nothing replaces it,")

	first = b.isSecond(b.hangs())

	b.newer()
	b.does("install", "changed   /usr/local/bin/cniscope")
	second := b.active("cniscope")
	if second == first {
		t.Error("the older program still runs")
	}

	b.Runs("systemctl start containerd")
	containerd := b.active("containerd")
	b.does("install --as plugin", "containerd has to be restarted", "systemctl restart containerd.service")
	b.does("install --as service", "removed   /opt/nri/plugins/90-cniscope")

	// A failing start is undone, and the previous service runs again.
	installed := b.files()
	b.newer()
	b.Write("/run/systemd/system/cniscope.service.d/broken.conf", "[Service]\nExecStartPre=/bin/false\n")
	b.Runs("systemctl daemon-reload")
	b.fails("install", "systemctl restart cniscope.service: failed", "journalctl -u cniscope.service", "undoing it failed, too")
	b.same(installed)
	b.Runs("rm /run/systemd/system/cniscope.service.d/broken.conf; systemctl daemon-reload; systemctl restart cniscope")
	harness.Equal(t, b.active("containerd"), containerd, "containerd was restarted")
	b.active("cniscope")

	b.does("install --as plugin", "removed   /etc/systemd/system/cniscope.service")
	b.Says("systemctl is-active cniscope || true", "inactive")
	b.does("install --as service", "removed   /opt/nri/plugins/90-cniscope")
	b.active("cniscope")
	b.does("uninstall", "removed   /usr/local/bin/cniscope")
	b.Says("systemctl is-active cniscope || true", "inactive")
	b.same(before)
	b.Runs("systemctl mask cniscope")
	b.fails("install --containerd-version 2.4", "masked", "systemctl unmask cniscope")
}

// hangs stops the process, waits until systemd has replaced it, and returns the new one.
func (b *booted) hangs() int {
	b.Helper()
	const override = "/run/systemd/system/cniscope.service.d/impatient.conf"
	b.Write(override, "[Service]\nWatchdogSec=2s\nRestartSec=100ms\n")
	b.Runs("systemctl daemon-reload; systemctl restart cniscope")
	first := b.active("cniscope")
	// An idle service feeds the watchdog.
	fed := func() string { return b.Runs("systemctl show cniscope -p WatchdogTimestampMonotonic") }
	for last, n := fed(), 0; n < 4; {
		if now := fed(); now != last {
			last, n = now, n+1
		}
		time.Sleep(50 * time.Millisecond)
	}
	harness.Equal(b, b.active("cniscope"), first, "the process, though nothing replaces it,")
	b.Runs(fmt.Sprintf("kill -STOP %d", first))
	harness.Until(b, "it hangs, and systemd starts another", func() bool {
		second := 0
		_, _ = fmt.Sscanf(b.Runs("systemctl show -p MainPID cniscope"), "MainPID=%d", &second)
		return second != first && second != 0
	})
	b.Runs("for i in $(seq 300); do systemctl is-active --quiet cniscope && exit 0; sleep 0.1; done; exit 1")
	b.does("status", "kernel probe: attached")
	b.Runs("rm " + override + "; systemctl daemon-reload; systemctl restart cniscope")
	return b.active("cniscope")
}

// isSecond starts the service beside another cniscope: it waits, names it, and starts when the other exits.
func (b *booted) isSecond(first int) (now int) {
	b.Helper()
	b.Runs("systemctl stop cniscope; setsid env -u NOTIFY_SOCKET " + b.program + " run >/run/other.log 2>&1 & echo $! >/run/other.pid")
	b.Runs("for i in $(seq 300); do grep -q 'observing CNI calls' /run/other.log && exit 0; sleep 0.1; done; cat /run/other.log; exit 1")
	other := strings.TrimSpace(b.Runs("cat /run/other.pid"))
	b.Runs("systemctl start cniscope; test -e /run/cniscope/node.lock")
	b.does("status", "kernel probe: attached", "process "+other, "waiting for another cniscope to exit: pid "+other)
	if out, err := b.Try(b.program + " run"); err == nil || !strings.Contains(out, "pid "+other+", started by hand, "+b.program) {
		b.Errorf("a third cniscope says: %s, %v", out, err)
	}
	waits := b.active("cniscope")
	b.Runs("kill $(cat /run/other.pid); while test -e /proc/$(cat /run/other.pid); do sleep 0.1; done")
	b.Becomes(b.program+" status", fmt.Sprintf("process %d", waits), "kernel probe: attached")
	if now = b.active("cniscope"); now == first || now != waits {
		b.Errorf("process %d was replaced by %d, then by %d", first, waits, now)
	}
	// The relay finds the runtime's sockets with pidfd_getfd, which systemd classifies as debugging.
	if filter := b.Runs("systemctl show cniscope -p SystemCallFilter"); !strings.Contains(filter, "pidfd_getfd") {
		b.Errorf("pidfd_getfd is forbidden: %s", filter)
	}
	return now
}

// booted is a systemd in namespaces, with private /etc, /usr/local and /var/lib.
type booted struct {
	*harness.Machine
	program string
	builds  int
}

const bootScript = `
for h in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
	if [ -e $h/cgroup.procs ]; then mkdir -p $h/$NAME; echo $$ >$h/$NAME/cgroup.procs; fi
done
mount --make-rprivate /
mount -t proc proc /proc
exec unshare --cgroup /bin/sh -ec '
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
	mount -t tmpfs tmpfs /sys/fs/cgroup
	mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
	mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified || true
fi
mount -t tmpfs -o mode=755 tmpfs /run
for dir in /etc /usr/local /var/lib /opt; do
	mkdir -p /run/changes$dir/upper /run/changes$dir/work
	mount -t overlay -o lowerdir=$dir,upperdir=/run/changes$dir/upper,workdir=/run/changes$dir/work overlay $dir
done
mkdir -p /etc/systemd /etc/containerd /run/lock /run/units
mount -t tmpfs tmpfs /etc/systemd
mount -t tmpfs tmpfs /etc/containerd
mkdir /etc/systemd/system
for unit in default sysinit basic shutdown multi-user rescue emergency umount final; do
	printf "[Unit]\nDefaultDependencies=no\n" >/run/units/$unit.target
done
printf "[Service]\nType=exec\nExecStart=/bin/sleep infinity\n" >/run/units/containerd.service
export container=test SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/systemd/system:/run/units
exec "$SYSTEMD" --system --log-target=console --show-status=0
'`

func boot(t *testing.T) *booted {
	t.Helper()
	harness.Root(t)
	const systemd = "/lib/systemd/systemd"
	if _, err := os.Stat(systemd); err != nil {
		t.Skip("needs systemd: ", err)
	}
	name := fmt.Sprintf("cniscope-systemd-%d", os.Getpid())
	cmd := exec.Command("/bin/sh", "-ec", bootScript)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NAME=" + name, "SYSTEMD=" + systemd}
	t.Cleanup(func() {
		for _, h := range []string{"", "systemd", "unified"} {
			_ = exec.Command("find", filepath.Join("/sys/fs/cgroup", h, name), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
		}
	})
	b := &booted{Machine: harness.Boot(t, cmd, 0), program: filepath.Join(t.TempDir(), "cniscope")}
	b.newer()
	return b
}

func (b *booted) newer() {
	b.Helper()
	b.builds++
	text := harness.Must(os.ReadFile(program))(b.T)
	harness.Check(b.T, os.RemoveAll(b.program))
	harness.Check(b.T, os.WriteFile(b.program, fmt.Appendf(text, "%d", b.builds), 0o755))
}

func (b *booted) does(line string, say ...string) {
	b.Helper()
	b.Says(b.program+" "+line, say...)
}

func (b *booted) fails(line string, say ...string) {
	b.Helper()
	out, err := b.Try(b.program + " " + line)
	if err == nil {
		b.Fatalf("%s: it did not fail:\n%s", line, out)
	}
	harness.Says(b, out, say...)
}

func (b *booted) active(unit string) (pid int) {
	b.Helper()
	_, err := fmt.Sscanf(b.Runs("systemctl is-active --quiet "+unit+" && systemctl show -p MainPID "+unit), "MainPID=%d", &pid)
	harness.Check(b.T, err)
	return pid
}

func (b *booted) files() string {
	b.Helper()
	const where = "/run/changes/*/upper /run/changes/*/*/upper /etc/systemd /etc/containerd"
	return b.Runs("{ find " + where + " -not -type d -printf '%p %M %l\\n'; find " + where + " -type f -exec sha256sum {} +; } 2>/dev/null | sort")
}

func (b *booted) same(want string) {
	b.Helper()
	harness.Equal(b, b.files(), want, "files have changed")
}
