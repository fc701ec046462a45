package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processes finds those that have to do with the node's network: agents, kube-proxy,
// kubelet, and plugins that run now, by the folders they lie in.
func processes(ctx context.Context, binDirs []string) (found []Process, err error) {
	names := append(agentNames(), "kube-proxy", "kubelet", "kube-controller-manager", "k3s", "kubelite")
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	hidden := blind()
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("looking at the processes, of which there are %d: %w", len(entries), ctx.Err())
		}
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, ok := processOf(pid, names, binDirs)
		if !ok {
			continue
		}
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if errors.Is(err, fs.ErrPermission) {
			hidden = fmt.Errorf("process %d (%s): which network it is in: %w", pid, p.Name, err)
		}
		p.HostNet = err == nil && ns == own
		p.read()
		found = append(found, p)
	}
	return found, hidden
}

// blind says why other users' processes are not seen as they are; nil if they are.
func blind() error {
	if names := lacking(unix.CAP_SYS_PTRACE); len(names) > 0 {
		return fmt.Errorf("which programs run: that needs %s: %w", names[0], fs.ErrPermission)
	}
	return nil
}

// processOf recognises a process by its program or, where that cannot be seen, its name.
func processOf(pid int, names, binDirs []string) (Process, bool) {
	p := Process{PID: pid}
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err == nil {
		file = strings.TrimSuffix(file, " (deleted)")
		p.File, p.Name = clean(file), clean(filepath.Base(file))
		p.Plugin = isPlugin(pid, filepath.Dir(file), binDirs)
		if p.Plugin || slices.Contains(names, p.Name) {
			return p, true
		}
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return p, false
	}
	short := strings.TrimSuffix(string(comm), "\n")
	for _, name := range names {
		if name == short || len(name) > 15 && name[:15] == short { // the kernel keeps 15 bytes
			p.Name = name
			return p, true
		}
	}
	return p, false
}

// isPlugin tells whether a program lies in a CNI bin folder. Where containerd does not say
// which these are, because a call that hangs holds it up, the process itself says so.
func isPlugin(pid int, dir string, binDirs []string) bool {
	if len(binDirs) == 0 {
		binDirs = strings.Split(variable(pid, "CNI_PATH"), ":")
	}
	return slices.Contains(binDirs, dir)
}

// read finds out what is asked of this kind of process.
func (p *Process) read() {
	p.Start = startOf(p.PID)
	if p.Plugin {
		p.Command = variable(p.PID, "CNI_COMMAND")
		return
	}
	arguments := split(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	switch p.Name {
	case "kube-proxy", "kube-controller-manager":
		p.Settings = flags(arguments, "cluster-cidr")
	case "cilium-agent":
		p.Settings = flags(arguments, ciliumSettings()...)
		for _, key := range ciliumSettings() {
			if v := variable(p.PID, "CILIUM_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))); v != "" {
				p.Settings = append(p.Settings, Setting{Key: key, Value: clean(v), From: "its environment"})
			}
		}
		dir := "/tmp/cilium/config-map" // where its pod puts it
		if named := flags(arguments, "config-dir"); len(named) > 0 {
			dir = named[0].Value
		}
		p.Settings = append(p.Settings, settingsIn(fmt.Sprintf("/proc/%d/root", p.PID), dir)...)
	}
}

// flags reads --key=value and --key value.
func flags(arguments []string, keys ...string) (found []Setting) {
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
		found = append(found, Setting{Key: key, Value: clean(value), From: "command line"})
	}
	return found
}

// variable is one of a process's environment; empty where it cannot be read.
func variable(pid int, name string) string {
	for _, kv := range split(fmt.Sprintf("/proc/%d/environ", pid)) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return clean(v)
		}
	}
	return ""
}

// split reads a file of strings that end with NUL; the kernel bounds it.
func split(file string) []string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}

// startOf is when a process started, by field 22 of its stat: clock ticks since boot.
func startOf(pid int) time.Time {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Now()
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	var now unix.Timespec
	if len(fields) < 20 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now()
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return time.Now()
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every platform that Go runs on
	return time.Now().Add(time.Duration(ticks)*tick - time.Duration(now.Nano()))
}
