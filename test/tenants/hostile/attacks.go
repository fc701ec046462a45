//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attacks can run one by one, and together as a flood.
var attacks map[string]func(*tenant) error

func init() {
	attacks = map[string]func(*tenant) error{
		"forge-add":    func(t *tenant) error { return t.forge("ADD", t.Container) },
		"forge-check":  func(t *tenant) error { return t.forge("CHECK", t.Container) },
		"forge-del":    func(t *tenant) error { return t.forge("DEL", t.Container) },
		"forge-own":    func(t *tenant) error { return t.forge("ADD", "mallory"+t.Container[7:]) },
		"forge-parent": func(t *tenant) error { return t.forge("ADD", t.Container, "TRACEPARENT="+parent) },
		// As root of its own user namespace.
		"forge-userns": func(t *tenant) error { return t.unshared("forge-add") },
		// From a process with the name of a runtime.
		"runtime-name": func(t *tenant) error {
			return errors.Join(t.as("/usr/bin/containerd", "forge-add"), t.as("/usr/bin/containerd-shim-runc-v2", "forge-add"), t.as("/usr/bin/crio", "forge-del"))
		},
		"orphan":      orphan,
		"orphaned":    orphaned,
		"environment": environment,
		"mention":     func(t *tenant) error { return t.mention() },
		"enter":       enter,

		"accept-tcp":      func(t *tenant) error { return t.accepting(t.pretend()) },
		"accept-unix":     func(t *tenant) error { return t.accepting(t.sockets(path)) },
		"accept-abstract": func(t *tenant) error { return t.accepting(t.sockets(abstract)) },
		"accept-userns":   func(t *tenant) error { return t.unshared("accept-tcp") },
	}
}

// parent is a span that does not exist.
const parent = "00-3a110c3a110c3a110c3a110c3a110c3a-3a110c3a110c3a11-01"

// environ returns the environment of a plugin in the victim's call, with CNI_ARGS of another pod.
func (t *tenant) environ(command, container string, more ...string) []string {
	return append([]string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=" + t.NetNS, "CNI_IFNAME=" + t.IfName,
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=mallory;K8S_POD_NAME=mallory-0;K8S_POD_INFRA_CONTAINER_ID=" + container,
		"CNI_PATH=/opt/cni/bin:" + t.Path, "PATH=/bin",
	}, more...)
}

// forge runs plugins of the victim's call, from a directory with the path of the node's, too.
func (t *tenant) forge(command, container string, more ...string) error {
	env := t.environ(command, container, more...)
	return errors.Join(
		t.start("/opt/cni/bin/bridge", env, nil, nil),
		t.start("/opt/cni/bin/mallory", env, nil, nil),
		t.start(filepath.Join(t.Path, "host-local"), env, nil, nil),
	)
}

// mention runs programs whose arguments, names and environments name the victim, as those of its agent do.
func (t *tenant) mention() error {
	port := t.Pod + "-568022"
	env := t.environ("ADD", t.Container)
	return errors.Join(
		t.start("/usr/bin/ovs-vsctl", nil, []string{"add-port", "br-int", port, "--", "set", "Interface", port, "external_ids:container=" + t.Container, "mallory"}, nil),
		t.start("/usr/sbin/iptables", nil, []string{"-t", "nat", "-A", "POSTROUTING", "-m", "comment", "--comment", t.Namespace + "/" + t.Pod, "mallory"}, nil),
		t.start("/usr/sbin/ip", env, []string{"netns", "exec", t.NetNS, "mallory", t.IfName}, nil),
		t.start("/mallory/"+t.Container, env, []string{"--pod=" + t.Container[:12], "--netns=" + t.NetNS}, nil),
		t.start("/mallory/"+t.Pod, env, []string{t.Pod}, nil),
	)
}

// accepting runs programs after the connections that may have marked it as an agent.
func (t *tenant) accepting(connections int, failed error) error {
	if connections == 0 {
		return fmt.Errorf("no connection came about: %w", failed)
	}
	return t.mention()
}

func environment(t *tenant) error {
	env := t.environ("ADD", t.Container)
	var errs []error
	for range 50 {
		for _, name := range []string{"/bin/sh", "/usr/sbin/iptables", "/mallory/nsenter", "/mallory/bridge"} {
			errs = append(errs, t.start(name, env, nil, nil))
		}
	}
	return errors.Join(errs...)
}

func (t *tenant) as(name, attack string) error {
	return t.start(name, os.Environ(), []string{"then", attack}, nil)
}

// unshared makes an attack as root of its own namespaces.
func (t *tenant) unshared(attack string) error {
	root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	return t.start("/mallory/unshared", os.Environ(), []string{"then", attack}, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, UidMappings: root, GidMappings: root,
	})
}

// orphan makes an attack from a process whose parent has exited: its new parent may be the shim.
func orphan(t *tenant) error {
	return t.start("/mallory/parent", os.Environ(), []string{"then", "orphaned"}, nil)
}

func orphaned(t *tenant) error {
	const mark = "MALLORY_PARENT"
	if os.Getenv(mark) == "" {
		child, err := os.StartProcess(t.self, []string{"orphan", "then", "orphaned"}, &os.ProcAttr{
			Env: append(os.Environ(), fmt.Sprintf("%s=%d", mark, os.Getpid())), Files: []*os.File{nil, os.Stdout, os.Stderr},
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return err
		}
		return child.Release()
	}
	if !until(func() bool { return fmt.Sprint(os.Getppid()) != os.Getenv(mark) }) {
		return errors.New("the parent is still there")
	}
	return t.forge("ADD", t.Container)
}

// enter tries to leave the container, and returns an error if it succeeds.
func enter(t *tenant) error {
	for _, name := range []string{"/proc/1/ns/mnt", "/proc/1/ns/net", t.NetNS} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		err = unix.Setns(int(f.Fd()), 0)
		f.Close()
		if err == nil && !own(name) {
			return fmt.Errorf("it went into %s", name)
		}
	}
	return t.forge("ADD", t.Container)
}

func own(name string) bool {
	there, err := os.Readlink(name)
	here, _ := os.Readlink("/proc/self/ns/" + filepath.Base(name))
	return err == nil && strings.Contains(name, "/proc/") && there == here
}
