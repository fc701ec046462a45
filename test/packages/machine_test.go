//go:build linux

package packages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// machine is a fresh, booted Debian with its own files, processes, network and systemd.
type machine struct{ *harness.Machine }

func boot(t *testing.T) *machine {
	t.Helper()
	harness.Root(t)
	dist := filepath.Dir(release)
	if release == "" {
		dist = filepath.Dir(filepath.Dir(file(t, "v0.2.0", "cniscope_0.2.0_amd64.deb")))
	}
	root := harness.Must(filepath.Abs(filepath.Join(cache, "bookworm")))(t)
	if _, err := os.Stat(filepath.Join(root, ".whole")); err != nil {
		t.Skip("make test-packages makes it: ", err)
	}
	tools := harness.Must(rig.Tools("containerd"))(t)
	name := fmt.Sprintf("cniscope-packages-%d", os.Getpid())
	cmd := exec.Command("/bin/sh", "boot.sh")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NAME=" + name, "ROOT=" + root, "DIR=" + t.TempDir(), "RIG=" + tools, "PACKAGES=" + dist}
	t.Cleanup(func() {
		_ = exec.Command("find", "/sys/fs/cgroup", "-mindepth", "2", "-depth", "-type", "d", "-path", "*/"+name+"*", "-exec", "rmdir", "{}", ";").Run()
		_ = exec.Command("rmdir", filepath.Join("/sys/fs/cgroup", name)).Run()
	})
	m := &machine{harness.Boot(t, cmd, syscall.CLONE_NEWNET, "-n", "-r", "-w",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := m.Try("journalctl --no-pager -o cat -u cniscope -u containerd | tail -n 60")
			t.Log(out)
		}
	})
	return m
}

// tree lists the files of the machine, without the databases of dpkg, apt and rpm, and logs.
func (m *machine) tree() string {
	m.Helper()
	return m.Runs(`cd /; { find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache/apt -o -path ./var/log \
		-o -path ./var/lib/rpm -o -path ./root/.rpmdb -o -path ./tmp \) -prune -o -printf '%P %M %U %G %l\n'
		find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache/apt -o -path ./var/log \
		-o -path ./var/lib/rpm -o -path ./root/.rpmdb -o -path ./tmp \) -prune -o -type f -exec sha256sum {} +; ls -A /run/cniscope 2>/dev/null | sed 's/^/run /' || :; } | sort`)
}

func (m *machine) same(before string) {
	m.Helper()
	after := m.tree()
	if after == before {
		return
	}
	was, is := map[string]bool{}, map[string]bool{}
	for l := range strings.Lines(before) {
		was[l] = true
	}
	for l := range strings.Lines(after) {
		is[l] = true
		if !was[l] {
			m.Errorf("new:  %s", l)
		}
	}
	for l := range was {
		if !is[l] {
			m.Errorf("gone: %s", l)
		}
	}
}

// cniscopes returns the processes of cniscope that no other one has started: one starts itself again for what needs a
// process of its own.
func (m *machine) cniscopes() []string {
	m.Helper()
	return strings.Fields(m.Runs(`ours() { case $(readlink /proc/$1/exe) in */cniscope | */90-cniscope | */cniscope-tarball | *'/cniscope (deleted)') ;; *) false ;; esac; }
		for p in /proc/[0-9]*; do
			ours ${p#/proc/} && ! ours $(sed -n 's/^PPid:[^0-9]*//p' $p/status) && echo ${p#/proc/}
		done 2>/dev/null || :`))
}

func (m *machine) active() string {
	m.Helper()
	m.Becomes("systemctl is-active cniscope | grep -x active || :", "active")
	return strings.TrimSpace(m.Runs("systemctl show -p MainPID --value cniscope"))
}

const conflist = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24"}]], "dataDir": "/run/ipam"}}]}
`

// containerd configures a containerd of the rig as a unit. version is a directory of test/tools/bin.
func (m *machine) containerd(version string) {
	m.Helper()
	m.Write("/etc/cni/net.d/10-pods.conflist", conflist)
	m.Write("/etc/containerd/config.toml", `version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
root = "/run/containerd-root"
[debug]
  level = "warn"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "`+rig.PauseImage+`"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/run/rig/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "/run/rig/runc"
`)
	m.Write("/etc/systemd/system/containerd.service", `[Service]
Type=notify
ExecStart=/run/rig/`+filepath.Join(version, "containerd")+`
Environment=PATH=/run/rig/`+version+`:/run/rig:/usr/sbin:/usr/bin:/sbin:/bin
Delegate=yes
KillMode=process
[Install]
WantedBy=multi-user.target
`)
	m.Runs("install -d -m 700 /var/lib/cni /var/lib/cni/results; systemctl daemon-reload; systemctl start containerd") // as its first pod creates them
	image := filepath.Join(m.Root(), "run/pause.tar")
	harness.Check(m.T, rig.WritePauseImage(image))
	m.Runs("/run/rig/ctr -n k8s.io images import /run/pause.tar")
}

func (m *machine) pod(ctx context.Context, name string) {
	m.Helper()
	socket := filepath.Join(m.Root(), "run/containerd/containerd.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	harness.Check(m.T, err)
	defer conn.Close()
	runtime := cri.NewRuntimeServiceClient(conn)
	sandbox, err := runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: "shop", Uid: "uid-" + name}, Hostname: name,
		LogDirectory: "/run/pods", Labels: map[string]string{"app": "shop"}, Linux: &cri.LinuxPodSandboxConfig{},
	}})
	if err != nil {
		m.Fatalf("pod %s: %v", name, err)
	}
	_, err = runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox.PodSandboxId})
	harness.Check(m.T, err)
}

func (m *machine) traced(ctx context.Context, pod string) {
	m.Helper()
	m.pod(ctx, pod)
	m.Becomes(shown+pod, "bridge ADD")
}
