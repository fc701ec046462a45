package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/kubelet"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// A healthy agent accepts a connection within tens of milliseconds.
	acceptsIn = time.Second
	agentsMax = 64
)

// askAgents connects and closes, and writes nothing. root is the plugins' root directory.
func askAgents(ctx context.Context, f *fact.Facts, root string, all []candidate) ([]fact.Agent, error) {
	asked := fact.AskedBy(f)
	asked = asked[:min(len(asked), agentsMax)]
	found := make([]fact.Agent, len(asked))
	ctx, cancel := context.WithTimeout(ctx, acceptsIn)
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range asked {
		wg.Go(func() {
			found[i] = lookFor(ctx, root, a)
			served(&found[i], all)
		})
	}
	wg.Wait()
	for i := range found {
		a := &found[i]
		for j, seen := range f.Scope.Value.Recent.Agents {
			if seen.Network == a.Network && seen.Kind == a.Kind && fact.SamePlace(seen.Address, a.Address) {
				a.Known = &f.Scope.Value.Recent.Agents[j]
			}
		}
	}
	return found, nil
}

func lookFor(ctx context.Context, root string, asked fact.Asked) fact.Agent {
	a := fact.Agent{Asked: asked}
	switch a.Kind {
	case fact.AsksFile:
		info, err := os.Stat(filepath.Join(root, a.Address))
		if a.Reach, a.Err = reachBy(err); err == nil {
			a.Made = info.ModTime()
		}
	case fact.AsksKubeconfig:
		server, err := kubelet.ServerIn(filepath.Join(root, a.Address))
		if err != nil || server == "" {
			a.Reach, a.Err = reachBy(err)
			return a
		}
		a.Server = server
		connect(ctx, &a, fact.AsksTCP, server)
	case fact.AsksUnix:
		file := filepath.Join(root, a.Address)
		if info, err := os.Stat(file); err == nil {
			a.Made = info.ModTime()
		}
		connect(ctx, &a, a.Kind, file)
	default:
		connect(ctx, &a, a.Kind, a.Address)
	}
	return a
}

func connect(ctx context.Context, a *fact.Agent, network, address string) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		a.Reach, a.Err = reachBy(err)
		return
	}
	defer c.Close()
	if a.Reach = fact.Answers; !peer.Accepted(ctx, c) {
		a.Reach = fact.Silent
	}
	a.Process = serverOf(anchor.Peer(c))
}

// reachBy classifies an error, which means nothing if it is not about the other end.
func reachBy(err error) (fact.Reach, string) {
	if err == nil {
		return fact.Answers, ""
	}
	said := fact.Clean(err.Error())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fact.Missing, said
	case errors.Is(err, syscall.EAGAIN), os.IsTimeout(err), errors.Is(err, context.DeadlineExceeded): // full queue
		return fact.Silent, said
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fact.Refused, said
	}
	return fact.Unknown, said
}

func serverOf(pid int) *fact.Server {
	stat, err := procfs.StatOf(pid)
	if pid <= 0 || err != nil {
		return nil
	}
	s := &fact.Server{
		PID: pid, Name: fact.Clean(stat.Name), Group: fact.Clean(procfs.CgroupOf(pid)),
		LastLine: lastWords(pid),
	}
	if file, err := procfs.Executable(pid); err == nil {
		s.Name = fact.Clean(filepath.Base(file))
	}
	s.Started, _ = procfs.Started(pid)
	s.State, s.Waits = agents.StateOf(pid)
	return s
}

func lastWords(pid int) string {
	for _, fd := range []int{2, 1} {
		if line := lastLineOf(procfs.OpenRegular(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), 0)); line != "" {
			return line
		}
	}
	return ""
}

func served(a *fact.Agent, all []candidate) {
	of := func(candidate) bool { return false }
	switch {
	case a.Process != nil:
		groups := procfs.Groups(a.Process.PID)
		of = func(c candidate) bool { return c.ID != "" && strings.Contains(groups, c.ID) }
	case a.Kind == fact.AsksUnix, a.Kind == fact.AsksFile:
		dir := filepath.Dir(a.Address)
		of = func(c candidate) bool {
			return c.SandboxReady && slices.ContainsFunc(c.mounts, func(m *cri.Mount) bool {
				return !m.GetReadonly() && fact.SamePlace(filepath.Clean(m.GetHostPath()), dir)
			})
		}
	}
	for _, c := range all {
		if of(c) {
			c.readLog()
			a.Containers = append(a.Containers, c.Container)
		}
	}
}

// viewOf returns a process's view. In a container, a process not known to share our view may see other files.
func viewOf(pid int, contained bool) view {
	own, err1 := procfs.OwnNamespace("mnt")
	its, err2 := procfs.Namespace(pid, "mnt")
	switch {
	case pid <= 0 || err1 != nil || err2 != nil:
		return view{sure: !contained}
	case own == its:
		return view{sure: !contained || pid != 1} // the container's own
	}
	return view{root: procfs.Root(pid), sure: true}
}

var service = regexp.MustCompile(`.*/([^/\s]+)\.service(?:[/\n]|$)`)

func unitOf(pid int) string {
	if pid <= 0 {
		return ""
	}
	return fact.Clean(firstGroup(service, procfs.Groups(pid)))
}

var containerID = regexp.MustCompile(`(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:[/\n]|$)`)

func firstGroup(in *regexp.Regexp, text string) string {
	if found := in.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
