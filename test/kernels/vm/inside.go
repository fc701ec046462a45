//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

func inner[B event.Body](s *scene, plugin string, of func(B) event.Process) (found []B, at []int64, err error) {
	root, err := s.run(plugin)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if b, ok := e.Body.(B); ok && of(b) == root.Process {
			found, at = append(found, b), append(at, e.Time)
		}
	}
	return found, at, nil
}

func waiter(w *event.Wait) event.Process { return w.Process }

func longest(s *scene, plugin string, kind event.WaitKind) (*event.Wait, int64, error) {
	waits, over, err := inner(s, plugin, waiter)
	var worst *event.Wait
	var took int64
	for i, w := range waits {
		if d := over[i] - w.Start; w.Kind == kind && (worst == nil || d > took) {
			worst, took = w, d
		}
	}
	if err == nil && worst == nil {
		err = fmt.Errorf("no wait of that kind among %d", len(waits))
	}
	return worst, took, err
}

// fileLock: the connector examines only processes that run for 0.25 s, which is chance in an emulated machine.
func fileLock(s *scene) error {
	if s.connector {
		return errors.New("only of what runs long")
	}
	w, _, err := longest(s, "locking", event.WaitLock)
	if err != nil {
		return err
	}
	if w.Path != lockFile || w.Name != "flock" || w.Error != "" || w.Holder == nil ||
		int(w.Holder.PID) != os.Getpid() || w.Holder.Name != "init" {
		return fmt.Errorf("%+v, held by %+v", *w, w.Holder)
	}
	return nil
}

func sleeps(s *scene) error {
	w, took, err := longest(s, "sleeping", event.WaitSleep)
	if err == nil && took < 70e6 {
		return fmt.Errorf("%d ns of 80 ms in %s", took, w.Name)
	}
	return err
}

// kernelLocks: one thread of a plugin waits for another.
func kernelLocks(s *scene) error {
	waits, _, err := inner(s, "contending", waiter)
	if err != nil {
		return err
	}
	root, _ := s.run("contending")
	rtnl := slices.DeleteFunc(waits, func(w *event.Wait) bool { return w.Kind != event.WaitMutex || w.Name != "rtnl" })
	if len(rtnl) == 0 {
		return errors.New("no wait for rtnl")
	}
	if !slices.ContainsFunc(rtnl, func(w *event.Wait) bool { return w.Holder != nil && w.Holder.Process == root.Process }) {
		return fmt.Errorf("%d waits for rtnl, all without the holder", len(rtnl))
	}
	return nil
}

func entries(s *scene, plugin string) ([]*event.Enter, error) {
	all, _, err := inner(s, plugin, func(e *event.Enter) event.Process { return e.Process })
	return all, err
}

func namespacesEntered(s *scene) error {
	root, err := s.run("setting")
	if err != nil {
		return err
	}
	entered, err := entries(s, "setting")
	if err != nil {
		return err
	}
	if len(entered) != 1 || entered[0].NetNS.Key == "" || entered[0].NetNS == root.NetNS {
		return fmt.Errorf("%d were entered", len(entered))
	}
	return nil
}

func settings(s *scene) error {
	root, err := s.run("setting")
	if err != nil {
		return err
	}
	written, _, err := inner(s, "setting", func(x *event.Setting) event.Process { return x.Process })
	if err != nil {
		return err
	}
	if len(written) != 1 || written[0].Key != setting || written[0].Value != "1" || written[0].Error != "" ||
		written[0].NetNS.Key == "" || written[0].NetNS == root.NetNS {
		return fmt.Errorf("%+v", written)
	}
	return nil
}

func configuration(s *scene) error {
	read, _, err := inner(s, "answering", func(x *event.Configuration) event.Process { return x.Process })
	if err != nil {
		return err
	}
	written, _, err := inner(s, "answering", func(x *event.Result) event.Process { return x.Process })
	if err != nil {
		return err
	}
	if len(read) != 1 || read[0].Network != "pods" || len(written) != 1 || !slices.Equal(written[0].IPs, []string{"10.1.2.3/24"}) {
		return fmt.Errorf("read %+v, written %+v", read, written)
	}
	return nil
}

// connections: init answered each.
func connections(s *scene) error {
	made, _, err := inner(s, "dialling", func(x *event.Connect) event.Process { return x.Process })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for network, address := range map[string]string{"unix": agent, "tcp": server} {
		i := slices.IndexFunc(made, func(c *event.Connect) bool { return c.Network == network && c.Address == address && c.Error == "" })
		if i < 0 {
			return fmt.Errorf("%s: no connection", network)
		}
		answered, closed := false, false
		for _, e := range s.events {
			switch b := e.Body.(type) {
			case *event.Accept:
				answered = answered || b.Socket == made[i].Socket && int(b.Agent.PID) == os.Getpid() && b.Agent.Name == "init"
			case *event.Close:
				closed = closed || b.Socket == made[i].Socket
			}
		}
		if !answered || !closed {
			return fmt.Errorf("%s: answered %v, closed %v", network, answered, closed)
		}
	}
	return nil
}

func refusals(s *scene) error {
	tried, _, err := inner(s, "refused", func(x *event.Connect) event.Process { return x.Process })
	if err != nil {
		return err
	}
	for _, why := range []string{"ENOENT", "ECONNREFUSED"} {
		if !slices.ContainsFunc(tried, func(c *event.Connect) bool { return c.Error == why }) {
			return fmt.Errorf("no %s", why)
		}
	}
	return nil
}

func firstConnection(s *scene) error {
	entered, err := entries(s, "first")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if f, ok := e.Body.(*event.FirstConnection); ok && len(entered) == 1 && f.NetNS == entered[0].NetNS {
			return nil
		}
	}
	return fmt.Errorf("none in the namespace that was entered (%d)", len(entered))
}
