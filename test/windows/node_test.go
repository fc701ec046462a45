//go:build linux

package windows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/tied"
)

const (
	wine       = "../../.cache/windows/wine"
	containerd = "../tools/bin/windows/containerd.exe"
	drive      = "/root/.wine/drive_c"
	pipe       = `\\.\pipe\containerd-test`
	agentPipe  = `\\.\pipe\antrea-test`
)

var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "cniscope-windows"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

var built = sync.OnceValue(func() error {
	for file, in := range map[string]string{"cniscope.exe": "../../plugin/cniscope", "standin.exe": "./standin"} {
		c := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(programs, file), in)
		c.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", file, err, out)
		}
	}
	out, err := exec.Command("x86_64-w64-mingw32-gcc", "-Wall", "-O1", "-shared", "-nostdlib", "-o", filepath.Join(programs, "computenetwork.dll"),
		filepath.Join("computenetwork", "computenetwork.c"), "-lkernel32", "-luser32", "-lole32").CombinedOutput()
	if err != nil {
		return fmt.Errorf("computenetwork.dll: %w: %s", err, out)
	}
	return nil
})

type node struct {
	t *testing.T
	// merged is the mount point of its Debian, in the mount namespace of pid, which ends it.
	merged string
	pid    int
	logs   string
}

func newNode(t *testing.T, plugins string) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, file := range []string{wine + "/.whole", containerd} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("%v: run make tools-windows", err)
		}
	}
	harness.Check(t, built())
	n := &node{t: t, logs: t.TempDir()}
	n.mount()
	for file, to := range map[string]string{
		"computenetwork.dll": "windows/system32", "cniscope.exe": "cniscope",
		"standin.exe": "", containerd: "containerd",
	} {
		if !strings.ContainsRune(file, '/') {
			file = filepath.Join(programs, file)
		}
		n.copy(file, filepath.Join(to, filepath.Base(file)))
	}
	for _, as := range []string{
		"opt/cni/bin/antrea.exe", "containerd/client.exe", "containerd/driver.exe", "antrea/antrea-agent.exe",
		"windows/system32/WindowsPowerShell/v1.0/powershell.exe",
	} {
		n.copy(filepath.Join(programs, "standin.exe"), as)
	}
	n.write("etc/cni/net.d/10-antrea.conflist", plugins)
	return n
}

// mount lays a file system over the Debian with wine, and starts a process that holds the node's namespaces.
func (n *node) mount() {
	dir := n.t.TempDir()
	base := harness.Must(filepath.Abs(wine))(n.t)
	base = harness.Must(filepath.EvalSymlinks(base))(n.t)
	n.merged = filepath.Join(dir, "merged")
	for _, d := range []string{"upper", "work", "merged"} {
		harness.Check(n.t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	script := `set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/merged"
mount -t proc proc "$2/merged/proc"
mount --bind /dev "$2/merged/dev"
mount -t proc proc /proc
touch "$2/ready"
exec sleep infinity`
	c := exec.Command("bash", "-c", script, "bash", base, dir)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	var failed bytes.Buffer
	c.Stderr = &failed
	harness.Check(n.t, tied.Start(c))
	n.pid = c.Process.Pid
	n.t.Cleanup(func() { // all its processes end with the first
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	harness.Eventually(n.t, func() error {
		if _, err := os.Stat(filepath.Join(dir, "ready")); err != nil {
			return fmt.Errorf("%w: %s", err, failed.String())
		}
		return nil
	})
}

func (n *node) path(file string) string {
	return filepath.Join("/proc", strconv.Itoa(n.pid), "root", n.merged, drive, file)
}

func (n *node) write(file, text string) {
	n.t.Helper()
	harness.Check(n.t, os.MkdirAll(filepath.Dir(n.path(file)), 0o755))
	harness.Check(n.t, os.WriteFile(n.path(file), []byte(text), 0o644))
}

func (n *node) copy(from, to string) {
	n.t.Helper()
	data := harness.Must(os.ReadFile(from))(n.t)
	harness.Check(n.t, os.MkdirAll(filepath.Dir(n.path(to)), 0o755))
	harness.Check(n.t, os.WriteFile(n.path(to), data, 0o755))
}

func (n *node) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	line := []string{
		"-t", strconv.Itoa(n.pid), "-m", "-p", "chroot", n.merged, "env", "-i", "HOME=/root", "PATH=/usr/bin:/bin:/usr/lib/wine",
		"WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=", "WINEPREFIX=/root/.wine",
	}
	return exec.CommandContext(ctx, "nsenter", append(append(append(line, env...), "wine"), args...)...)
}

// hang exceeds the duration of every program, even on a busy machine.
const hang = 4 * time.Minute

func (n *node) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), hang)
	defer cancel()
	file, err := os.CreateTemp(n.logs, "run") // not a pipe: wine's background processes would keep it open
	if err != nil {
		return "", err
	}
	defer file.Close()
	c := n.command(ctx, nil, args...)
	c.Stdout, c.Stderr = file, file
	failed := c.Run()
	out, err := os.ReadFile(file.Name())
	return string(out), errors.Join(failed, err)
}

func (n *node) start(name string, env []string, args ...string) (log string) {
	n.t.Helper()
	log = filepath.Join(n.logs, name+".log")
	out := harness.Must(os.Create(log))(n.t)
	defer out.Close()
	c := n.command(context.Background(), env, args...)
	c.Stdout, c.Stderr = out, out
	harness.Check(n.t, tied.Start(c))
	go func() { _ = c.Wait() }()
	n.t.Cleanup(func() {
		if text, err := os.ReadFile(log); err == nil && n.t.Failed() {
			n.t.Logf("%s:\n%s", name, tail(text))
		}
	})
	return log
}

// drive prepares pods that libcni runs, and returns a function that starts one. log is that of a
// cniscope that trusts the driver.
func (n *node) drive(log string, names ...string) (begin func(name string)) {
	n.t.Helper()
	n.start("driver", nil, append([]string{
		`C:\containerd\driver.exe`, "-bin", `C:\opt\cni\bin`, "-conf", `C:\etc\cni\net.d\10-antrea.conflist`, "-when", `C:\containerd\begin`, "-alive", "1h", "default",
	}, names...)...)
	n.writes(log, "driver.exe (pid ")
	return func(name string) { n.write("containerd/begin-"+name, "") }
}

func tail(text []byte) []byte { return text[max(0, len(text)-6000):] }

func (n *node) writes(log, what string) {
	n.t.Helper()
	harness.Eventually(n.t, func() error {
		text, err := os.ReadFile(log)
		if err == nil {
			err = harness.Contains(string(text), what)
		}
		return err
	})
}

func (n *node) containerd(endpoint string) {
	n.t.Helper()
	n.write("containerd/config.toml", `version = 3
root = 'C:\containerd\root'
state = 'C:\containerd\state'
[grpc]
  address = '`+pipe+`'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['C:\opt\cni\bin']
  conf_dir = 'C:\etc\cni\net.d'
`)
	env := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_SERVICE_NAME=containerd", "OTEL_BSP_SCHEDULE_DELAY=200",
		"STANDIN_POWERSHELL=2500ms",
	}
	n.start("containerd", env, `C:\containerd\containerd.exe`, "--config", `C:\containerd\config.toml`, "--log-level", "debug")
	harness.Eventually(n.t, func() error {
		if out, err := n.run(`C:\containerd\client.exe`, "-pipe", pipe, "-within", "5s", "greet"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		out, err := n.run(`C:\containerd\client.exe`, "-pipe", pipe, "-within", "5s", "version")
		if err == nil && !strings.HasPrefix(out, "containerd 2.") {
			err = errors.New(out)
		}
		return err
	})
}

func (n *node) options(endpoint, others string) {
	n.t.Helper()
	n.write("cniscope/cniscope.toml", others+`
[runtime]
socket = '`+pipe+`'
[cni]
conf_dir = 'C:\etc\cni\net.d'
[export.otlp]
endpoint = "`+endpoint+`"
[state]
dir = 'C:\cniscope\state'
`)
}

func (n *node) cniscope(endpoint, options string) (log string) {
	n.t.Helper()
	n.options(endpoint, options)
	log = n.start("cniscope", nil, `C:\cniscope\cniscope.exe`, "run", "--config", `C:\cniscope\cniscope.toml`)
	n.writes(log, "observing CNI calls by the process table")
	n.writes(log, "trusted to run CNI plugins")
	return log
}

// pods runs sandboxes concurrently, and returns their results. Under wine, every sandbox fails after CNI.
func (n *node) pods(names ...string) string {
	n.t.Helper()
	out, err := n.run(append([]string{`C:\containerd\client.exe`, "-pipe", pipe, "run", "default"}, names...)...)
	if err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
	return out
}

func (n *node) backend() (endpoint string, all func() []span) {
	s := &spans{}
	return "http://" + otlptest.Backend(n.t, "127.0.0.1:0", s), s.list
}

var _ coltracepb.TraceServiceServer = (*spans)(nil)
