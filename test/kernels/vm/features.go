//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe"
)

var optional = map[string]func(*scene) error{
	"network namespace cookies":             in("inside", networkCookie),
	"waits for the kernel's own locks":      in("contending", kernelLocks),
	"first connection, refused connections": in("first", firstConnection),
	"who drops packets":                     dropped(byXDP, namesXDP),
}

type feature struct {
	name  string
	check func(*scene) error
}

// in checks what was seen of a plugin's run.
func in(plugin string, check func(*scene, *event.Exec) error) func(*scene) error {
	return func(s *scene) error {
		root, err := s.run(plugin)
		if err != nil {
			return err
		}
		return check(s, root)
	}
}

// features in the order of test/kernels/testdata/features.md.
var features = []feature{
	{"kernel probe", func(s *scene) error { return s.refused }},
	{"process connector in its place", inPlace},
	{"what is off is said", said},
	{"plugins run undisturbed", undisturbed},
	{"cniscope, from call to span", wholeProgram},
	{"cniscope doctor knows the kernel", doctor},
	{"fork, exec and exit", in("tree", wholeTree)},
	{"function that started a command", in("tree", startedBy)},
	{"exit code", in("failing", exitCode)},
	{"signal", in("killed", signal)},
	{"identity of the call", in("tree", callIdentity)},
	{"delegate and its standard input", in("tree", delegates)},
	{"script, by its own name", in("script", script)},
	{"exec of a thread", in("replaced", execOfThread)},
	{"long environment", in("crowded", longEnvironment)},
	{"unprivileged callers not trusted", unprivileged},
	{"CPU time", in("busy", cpuTime)},
	{"run-queue delay", in("busy", runDelay)},
	{"time of the fork", in("tree", started)},
	{"standard input", in("inside", standardInput)},
	{"PID namespaces", in("inside", pidNamespaces)},
	{"network namespace", in("inside", networkNamespace)},
	{"network namespace cookie", in("inside", networkCookie)},
	{"calls in progress at start", in("hung", underWay)},
	{"inside of plugins by functions", byFunctions},
	{"sleeps", in("sleeping", sleeps)},
	{"waits for locks on files, who has them", in("locking", fileLock)},
	{"waits for the kernel's own locks, who has them", in("contending", kernelLocks)},
	{"sysctls written", in("setting", settings)},
	{"network namespaces entered", in("setting", namespacesEntered)},
	{"configuration and result", in("answering", configuration)},
	{"connections, who answers", in("dialling", connections)},
	{"connections refused", in("refused", refusals)},
	{"first connection of a pod", in("first", firstConnection)},
	{"who dropped packets", dropped(byXDP, namesXDP)},
	{"nftables chain that dropped packets", dropped(byChain, namesChain)},
	{"nothing lost", nothingLost},
	{"tracepoints: system calls", tracepoints("sys_enter", "sys_exit")},
	{"tracepoints: lock contention", tracepoints("contention_begin", "contention_end")},
	{"tracepoint: netlink extack", tracepoints("netlink_extack")},
	{"tracepoint: socket states", tracepoints("inet_sock_set_state")},
}

// said checks that cniscope names missing features: by the error's remedy without a probe, otherwise by events.
func said(s *scene) error {
	if byConnector(s.options) {
		return nil
	}
	if s.refused != nil {
		if no, ok := errors.AsType[*probe.UnsupportedError](s.refused); !ok || no.Remedy == "" {
			return errors.New("no remedy")
		}
		return nil
	}
	if strings.Contains(s.options, "lockdown=confidentiality") {
		for _, name := range []string{"inside of plugins", "who drops packets"} {
			if !s.degraded(name) {
				return errors.New(name + ": not said to be off")
			}
		}
		return nil
	}
	for name, check := range optional {
		if off := check(s) != nil; off != s.degraded(name) {
			return fmt.Errorf("%s: off is %v, said to be off is %v", name, off, s.degraded(name))
		}
	}
	return nil
}

func byFunctions(s *scene) error {
	if s.stats.Way != "functions" {
		return fmt.Errorf("by %q", s.stats.Way)
	}
	return nil
}

// inPlace checks that the process connector observes without a probe.
func inPlace(s *scene) error {
	switch {
	case s.unsupported != nil:
		return s.unsupported
	case !s.connector:
		return errors.New("there is a probe")
	}
	return nil
}

// undisturbed checks the callers' results, with and without a probe.
func undisturbed(s *scene) error {
	codes := map[string]int{"failing": 7, "replaced": 5, "hung": 4}
	for plugin, c := range s.calls {
		want := c.state.Exited() && c.state.ExitStatus() == codes[plugin]
		if plugin == "killed" {
			want = c.state.Signaled()
		}
		if !want {
			return fmt.Errorf("%s ended with %#x", plugin, *c.state)
		}
	}
	return nil
}

func wholeTree(s *scene, root *event.Exec) error {
	child := s.exec(func(x *event.Exec) bool { return x.Parent == root.Process && x.File == helper })
	switch {
	case child == nil:
		return errors.New("its child's exec was not seen")
	case child.Name != "helper" || child.Root || child.InPath || child.Call != nil || child.Process == root.Process:
		return fmt.Errorf("its child: %+v", *child)
	case s.fork(child.Process).Parent != root.Process:
		return errors.New("its child's fork was not seen")
	case s.exit(child.Process).Unseen || s.exit(root.Process).Unseen:
		return errors.New("an exit was not seen")
	}
	return nil
}

func startedBy(s *scene, root *event.Exec) error {
	child := s.exec(func(x *event.Exec) bool { return x.Parent == root.Process && x.File == helper })
	if child == nil {
		return errors.New("its child's exec was not seen")
	}
	if stack := s.fork(child.Process).Stack; len(stack) == 0 || stack[0].Function != "main.tree" {
		return fmt.Errorf("%+v", stack)
	}
	return nil
}

func exitCode(s *scene, root *event.Exec) error {
	if x := s.exit(root.Process); x.Code != 7 || x.Signal != "" {
		return fmt.Errorf("%+v, want code 7", *x)
	}
	return nil
}

func signal(s *scene, root *event.Exec) error {
	if x := s.exit(root.Process); x.Code != 0 || x.Signal != "SIGKILL" {
		return fmt.Errorf("%+v, want SIGKILL", *x)
	}
	return nil
}

func callIdentity(_ *scene, root *event.Exec) error {
	if want := identity("tree"); !root.InPath || *root.Call != want || root.File != pluginFolder+"/tree" || root.Truncated {
		return fmt.Errorf("%+v with %+v, want %+v", *root, *root.Call, want)
	}
	return nil
}

func delegates(s *scene, root *event.Exec) error {
	ipam := s.exec(func(x *event.Exec) bool { return x.Parent == root.Process && x.Name == "delegate" })
	if ipam == nil || !ipam.InPath || ipam.Root || ipam.Call == nil || ipam.Stdin == "" || ipam.Stdin == root.Stdin {
		return fmt.Errorf("%+v below %+v", ipam, *root)
	}
	return nil
}

func script(_ *scene, root *event.Exec) error {
	if root.Name != "script" || root.File != pluginFolder+"/script" || len(root.Args)+root.Hidden != 0 {
		return fmt.Errorf("%+v", *root)
	}
	return nil
}

func execOfThread(s *scene, root *event.Exec) error {
	second := s.exec(func(x *event.Exec) bool { return x.Process == root.Process && x.Name == "helper" })
	if second == nil {
		return errors.New("the second image was not seen, or not as the same process")
	}
	if x := s.exit(root.Process); x.Code != 5 {
		return fmt.Errorf("its end: %+v, want code 5", *x)
	}
	return nil
}

func longEnvironment(_ *scene, root *event.Exec) error {
	if want := identity("crowded"); *root.Call != want || root.Truncated {
		return fmt.Errorf("%+v with %+v", *root, *root.Call)
	}
	return nil
}

func unprivileged(s *scene) error {
	root, err := s.run("tenant")
	switch {
	case s.unsupported != nil:
		return err
	case err == nil:
		return fmt.Errorf("trusted: %+v", *root)
	}
	return nil
}

// tracepoints checks for BTF tracepoints.
func tracepoints(names ...string) func(*scene) error {
	return func(*scene) error {
		spec, err := btf.LoadKernelSpec()
		if err != nil {
			return err
		}
		for _, name := range names {
			var t *btf.Typedef
			if err := spec.TypeByName("btf_trace_"+name, &t); err != nil {
				return fmt.Errorf("no tracepoint %s", name)
			}
		}
		return nil
	}
}

func standardInput(s *scene, root *event.Exec) error {
	if want := s.calls["inside"].says.Stdin; root.Stdin != want || want == "" {
		return fmt.Errorf("%q, want %q", root.Stdin, want)
	}
	return nil
}

func networkNamespace(s *scene, root *event.Exec) error {
	want := s.calls["inside"].says.NetNS
	if root.NetNS.Label != want || want == "" || s.exit(root.Process).NetNS != root.NetNS {
		return fmt.Errorf("%+v, and %+v in the end, want %s", root.NetNS, s.exit(root.Process).NetNS, want)
	}
	return nil
}

func networkCookie(s *scene, root *event.Exec) error {
	if root.NetNS.Key == root.NetNS.Label {
		return errors.New("the inode number stands in for it")
	}
	if want := strconv.FormatUint(s.calls["inside"].says.Cookie, 10); root.NetNS.Key != want {
		return fmt.Errorf("%s, want %s", root.NetNS.Key, want)
	}
	return nil
}

func nothingLost(s *scene) error {
	if s.unsupported != nil {
		return errors.New("the kernel probe is off")
	}
	if s.connector && len(s.stats.Lost) > 0 {
		return fmt.Errorf("%v", s.stats.Lost)
	}
	if st := s.stats; st.Lost["ring full"]+st.Lost["process table full"]+st.Undecodable+st.Lost["environment too long"] != 0 || st.Tracked != 0 {
		return fmt.Errorf("%+v", st)
	}
	return nil
}
