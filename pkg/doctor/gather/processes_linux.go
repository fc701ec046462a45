package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/procfs"
)

func processes(ctx context.Context, binDirs []string) (found []fact.Process, err error) {
	names := append(fact.AgentNames(), "kube-proxy", "kubelet", "kube-controller-manager", "k3s", "kubelite")
	pids, err := procfs.All()
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes: %w", err)
	}
	own, err := procfs.OwnNamespace("net")
	if err != nil {
		return nil, err
	}
	hidden := blind()
	memory := procfs.NewMemory()
	for _, pid := range pids {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot read all of %d processes in time: %w", len(pids), ctx.Err())
		}
		p, ok := recognize(pid, memory, names, binDirs)
		if !ok {
			continue
		}
		ns, err := procfs.Namespace(pid, "net")
		if errors.Is(err, fs.ErrPermission) {
			hidden = fmt.Errorf("cannot read the network namespace of process %d (%s): %w", pid, p.Name, err)
		}
		p.HostNet = err == nil && ns == own
		readDetails(&p, memory)
		found = append(found, p)
	}
	return found, hidden
}

func blind() error {
	if names := lacking(unix.CAP_SYS_PTRACE); len(names) > 0 {
		return fmt.Errorf("cannot read other users' processes without %s: %w", names[0], fs.ErrPermission)
	}
	return nil
}

func recognize(pid int, memory *procfs.Memory, names, binDirs []string) (fact.Process, bool) {
	p := fact.Process{PID: pid}
	if file, err := procfs.Executable(pid); err == nil {
		p.File, p.Name = fact.Clean(file), fact.Clean(filepath.Base(file))
		p.Plugin = isPlugin(pid, memory, filepath.Dir(file), binDirs)
		if p.Plugin || slices.Contains(names, p.Name) {
			return p, true
		}
	}
	stat, err := procfs.StatOf(pid)
	if err != nil {
		return p, false
	}
	for _, name := range names {
		if name[:min(15, len(name))] == stat.Name { // the kernel keeps 15 bytes
			p.Name = name
			return p, true
		}
	}
	return p, false
}

// isPlugin uses CNI_PATH if a hung call keeps containerd from naming plugin directories. Any process can set that, so
// a plugin is privileged.
func isPlugin(pid int, memory *procfs.Memory, dir string, binDirs []string) bool {
	if len(binDirs) == 0 {
		environment, _ := memory.Environment(pid)
		binDirs = strings.Split(variable(environment, "CNI_PATH"), ":")
	}
	return slices.Contains(binDirs, dir) && anchor.Privileged(pid)
}

func readDetails(p *fact.Process, memory *procfs.Memory) {
	var err error
	if p.Start, err = procfs.Started(p.PID); err != nil {
		p.Start = time.Now()
	}
	environment, _ := memory.Environment(p.PID)
	if p.Plugin {
		p.Command = variable(environment, "CNI_COMMAND")
		return
	}
	p.LastLine, p.Container = lastWords(p.PID), firstGroup(containerID, procfs.Groups(p.PID))
	arguments, _ := memory.Arguments(p.PID)
	switch p.Name {
	case "kube-proxy", "kube-controller-manager":
		p.Settings = flags(arguments, "cluster-cidr")
		for _, config := range flags(arguments, "config") {
			p.Settings = append(p.Settings, clusterCIDR(procfs.Root(p.PID), config.Value)...)
		}
	case "cilium-agent":
		p.Settings = flags(arguments, fact.CiliumSettings()...)
		for _, key := range fact.CiliumSettings() {
			if v := variable(environment, "CILIUM_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))); v != "" {
				p.Settings = append(p.Settings, fact.Setting{Key: key, Value: v, From: "its environment"})
			}
		}
		dir := "/tmp/cilium/config-map" // the pod's default
		if named := flags(arguments, "config-dir"); len(named) > 0 {
			dir = named[0].Value
		}
		p.Settings = append(p.Settings, settingsIn(procfs.Root(p.PID), dir)...)
	}
}

func variable(environment []string, name string) string {
	for _, kv := range environment {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return fact.Clean(v)
		}
	}
	return ""
}

func flags(arguments []string, keys ...string) (found []fact.Setting) {
	for i, a := range arguments {
		if !strings.HasPrefix(a, "--") {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !slices.Contains(keys, key) {
			continue
		}
		switch {
		case !ok && i+1 < len(arguments) && !strings.HasPrefix(arguments[i+1], "-"):
			value = arguments[i+1]
		case !ok:
			value = "true"
		}
		found = append(found, fact.Setting{Key: key, Value: fact.Clean(value), From: "command line"})
	}
	return found
}

// settingsIn reads a mounted ConfigMap of Cilium. From is the node's path.
func settingsIn(root, dir string) (found []fact.Setting) {
	for _, key := range fact.CiliumSettings() {
		file := filepath.Join(dir, key)
		if value := readWithin(root, file, 64); value != "" { // "true", "strict"
			from := "its ConfigMap, " + fact.Clean(filepath.Join(root, file))
			found = append(found, fact.Setting{Key: key, Value: fact.Clean(strings.TrimSpace(value)), From: from})
		}
	}
	return found
}

var clusterCIDRs = regexp.MustCompile(`(?m)^clusterCIDR: *["']?([0-9a-fA-F:./,]+)`)

func clusterCIDR(root, file string) (found []fact.Setting) {
	if value := firstGroup(clusterCIDRs, readWithin(root, file, 64<<10)); value != "" {
		found = append(found, fact.Setting{Key: "cluster-cidr", Value: value, From: "configuration, " + fact.Clean(file)})
	}
	return found
}

// readWithin returns the beginning of a regular file. No link leads out of root.
func readWithin(root, file string, most int64) string {
	top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(top)
	at, err := unix.Openat2(top, strings.TrimPrefix(file, "/"), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return ""
	}
	defer unix.Close(at)
	f, err := procfs.OpenRegular(fmt.Sprintf("/proc/self/fd/%d", at), 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, most))
	return string(text)
}

// mountedSettings is for stopped containers.
func mountedSettings(mounts []*cri.Mount) (found []fact.Setting) {
	const dir = "/tmp/cilium/config-map"
	for _, m := range mounts {
		if rest, ok := strings.CutPrefix(dir, filepath.Clean(m.GetContainerPath())); ok && (rest == "" || rest[0] == '/') {
			found = append(found, settingsIn(theNode(contained()).path(m.GetHostPath()), "."+rest)...)
		}
	}
	return found
}

// reach returns a socket's process. gRPC would retry first.
func reach(socket string, patience time.Duration) (pid int, err error) {
	conn, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return 0, err
	}
	return anchor.Peer(conn), conn.Close()
}

func runnable(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// openLog opens a regular file without following a link.
func openLog(path string) (*os.File, error) { return procfs.OpenRegular(path, unix.O_NOFOLLOW) }

// openFolder does not wait at a pipe.
func openFolder(path string) (*os.File, error) { return os.OpenFile(path, unix.O_DIRECTORY, 0) }

func dockerFolders(pid int, c *fact.CRI) {
	arguments, _ := procfs.NewMemory().Arguments(pid)
	for _, s := range flags(arguments, "cni-conf-dir", "cni-bin-dir") {
		switch s.Key {
		case "cni-conf-dir":
			c.ConfDir = filepath.Clean(s.Value)
		case "cni-bin-dir":
			c.BinDirs = strings.Split(s.Value, ",")
		}
	}
}
