//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// inner returns what a plugin's first process did, and when.
func inner[B event.Body](s *scene, root *event.Exec, who func(B) event.Process) (found []B, at []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if b, ok := e.Body.(B); ok && who(b) == root.Process {
			found, at = append(found, b), append(at, e.Time)
		}
	}
	return found, at
}

func waiter(w *event.Wait) event.Process { return w.Process }

func longest(s *scene, root *event.Exec, kind event.WaitKind) (worst *event.Wait, took int64, err error) {
	waits, over := inner(s, root, waiter)
	for i, w := range waits {
		if d := over[i] - w.Start; w.Kind == kind && (worst == nil || d > took) {
			worst, took = w, d
		}
	}
	if worst == nil {
		err = fmt.Errorf("no wait of that kind among %d", len(waits))
	}
	return worst, took, err
}

// fileLock: the connector examines only processes that run for 0.25 s, which is chance in an emulated machine.
func fileLock(s *scene, root *event.Exec) error {
	if s.connector {
		return errors.New("only of what runs long")
	}
	w, _, err := longest(s, root, event.WaitLock)
	if err != nil {
		return err
	}
	if w.Path != lockFile || w.Name != "flock" || w.Error != "" || w.Holder == nil ||
		int(w.Holder.PID) != os.Getpid() || w.Holder.Name != "init" {
		return fmt.Errorf("%+v, held by %+v", *w, w.Holder)
	}
	return nil
}

func sleeps(s *scene, root *event.Exec) error {
	w, took, err := longest(s, root, event.WaitSleep)
	if err == nil && took < 70e6 {
		return fmt.Errorf("%d ns of 80 ms in %s", took, w.Name)
	}
	return err
}

// kernelLocks: one thread of a plugin waits for another.
func kernelLocks(s *scene, root *event.Exec) error {
	waits, _ := inner(s, root, waiter)
	rtnl := slices.DeleteFunc(waits, func(w *event.Wait) bool { return w.Kind != event.WaitMutex || w.Name != "rtnl" })
	if len(rtnl) == 0 {
		return errors.New("no wait for rtnl")
	}
	if !slices.ContainsFunc(rtnl, func(w *event.Wait) bool { return w.Holder != nil && w.Holder.Process == root.Process }) {
		return fmt.Errorf("%d waits for rtnl, all without the holder", len(rtnl))
	}
	return nil
}

func entries(s *scene, root *event.Exec) []*event.Enter {
	all, _ := inner(s, root, func(e *event.Enter) event.Process { return e.Process })
	return all
}

func namespacesEntered(s *scene, root *event.Exec) error {
	entered := entries(s, root)
	if len(entered) != 1 || entered[0].NetNS.Key == "" || entered[0].NetNS == root.NetNS {
		return fmt.Errorf("%d were entered", len(entered))
	}
	return nil
}

func settings(s *scene, root *event.Exec) error {
	written, _ := inner(s, root, func(x *event.Setting) event.Process { return x.Process })
	if len(written) != 1 || written[0].Key != setting || written[0].Value != "1" || written[0].Error != "" ||
		written[0].NetNS.Key == "" || written[0].NetNS == root.NetNS {
		return fmt.Errorf("%+v", written)
	}
	return nil
}

func configuration(s *scene, root *event.Exec) error {
	read, _ := inner(s, root, func(x *event.Configuration) event.Process { return x.Process })
	written, _ := inner(s, root, func(x *event.Result) event.Process { return x.Process })
	if len(read) != 1 || read[0].Network != "pods" || len(written) != 1 || !slices.Equal(written[0].IPs, []string{"10.1.2.3/24"}) {
		return fmt.Errorf("read %+v, written %+v", read, written)
	}
	return nil
}

// connections: init answered each.
func connections(s *scene, root *event.Exec) error {
	made, _ := inner(s, root, dialler)
	for network, address := range map[string]string{"unix": agent, "tcp": server} {
		i := slices.IndexFunc(made, func(c *event.Connect) bool { return c.Network == network && c.Address == address && c.Error == "" })
		if i < 0 {
			return fmt.Errorf("%s: no connection", network)
		}
		answered := first(s, func(a *event.Accept) bool {
			return a.Socket == made[i].Socket && int(a.Agent.PID) == os.Getpid() && a.Agent.Name == "init"
		}) != nil
		closed := first(s, func(c *event.Close) bool { return c.Socket == made[i].Socket }) != nil
		if !answered || !closed {
			return fmt.Errorf("%s: answered %v, closed %v", network, answered, closed)
		}
	}
	return nil
}

func dialler(c *event.Connect) event.Process { return c.Process }

func refusals(s *scene, root *event.Exec) error {
	tried, _ := inner(s, root, dialler)
	for _, why := range []string{"ENOENT", "ECONNREFUSED"} {
		if !slices.ContainsFunc(tried, func(c *event.Connect) bool { return c.Error == why }) {
			return fmt.Errorf("no %s", why)
		}
	}
	return nil
}

func firstConnection(s *scene, root *event.Exec) error {
	entered := entries(s, root)
	if len(entered) != 1 || first(s, func(f *event.FirstConnection) bool { return f.NetNS == entered[0].NetNS }) == nil {
		return fmt.Errorf("none in the namespace that was entered (%d)", len(entered))
	}
	return nil
}
