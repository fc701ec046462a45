//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Progress is the progress of a flood, printed every second and at the end.
type Progress struct {
	// Connections and Execs succeeded, Failed did not. Exact are connections with the same ports as a victim's.
	Connections, Execs, Failed, Exact int64
	Over                              bool
}

func (t *tenant) flood(args []string) error {
	flags := flag.NewFlagSet("flood", flag.ContinueOnError)
	connections := flags.Int64("connections", 1000, "")
	execs := flags.Int64("execs", 100, "")
	within := flags.Duration("for", 10*time.Second, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !until(func() bool { _, err := victim(); return err == nil }) {
		return fmt.Errorf("there is no victim")
	}
	var p struct{ connections, execs, failed, exact atomic.Int64 }
	say := func(over bool) {
		text, _ := json.Marshal(Progress{p.connections.Load(), p.execs.Load(), p.failed.Load(), p.exact.Load(), over})
		fmt.Println(string(text))
	}
	end := time.Now().Add(6**within + 5*time.Minute) // for a busy machine
	var running sync.WaitGroup
	running.Go(func() {
		var before string
		source := uint16(rand.Uint32())
		pace(*connections, *within, end, &p.connections, &p.failed, func() int64 {
			if c, err := victim(); err == nil && len(c.Connections) > 0 && c.Container != before {
				before = c.Container
				at := &tenant{Call: c, self: t.self, post: t.post}
				tcp, _ := at.pretend()
				paths, _ := at.sockets(path)
				names, _ := at.sockets(abstract)
				p.exact.Add(int64(tcp + paths + names))
				return int64(tcp + paths + names)
			}
			source = max(source+1, 1024)
			return t.sweep(source)
		})
	})
	running.Go(func() {
		i := 0
		pace(*execs, *within, end, &p.execs, &p.failed, func() int64 {
			i++
			c, err := victim()
			if err != nil {
				return 0
			}
			return (&tenant{Call: c, self: t.self, post: t.post}).program(i)
		})
	})
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	for tick := time.Tick(time.Second); ; {
		select {
		case <-tick:
			say(false)
		case <-done:
			say(true)
			return nil
		}
	}
}

// sweep connects from a source port to a port of an agent, so that a plugin eventually has the same pair.
func (t *tenant) sweep(source uint16) int64 {
	c, err := victim()
	if err != nil || len(c.Connections) == 0 {
		return 0
	}
	_, port, _ := net.SplitHostPort(c.Connections[int(source)%len(c.Connections)][1])
	if t.post.meet(fmt.Sprintf("127.0.0.2:%d", source), "127.0.0.2:"+port) != nil {
		return 0
	}
	return 1
}

func (t *tenant) program(i int) int64 {
	var err error
	switch i % 8 {
	case 0:
		err = t.start("/opt/cni/bin/bridge", t.environ("ADD", t.Container, "TRACEPARENT="+parent), nil, nil)
	case 1:
		err = t.start("/opt/cni/bin/host-local", t.environ("DEL", t.Container), nil, nil)
	case 2:
		err = t.start(t.Path+"/bridge", t.environ("ADD", "mallory"+fmt.Sprintf("%057x", i)), nil, nil)
	case 3:
		err = t.start("/usr/sbin/iptables", t.environ("ADD", t.Container), []string{"-t", "nat", "-C", "mallory", t.Pod}, nil)
	case 4:
		err = t.start("/usr/bin/ovs-vsctl", nil, []string{"add-port", "br-int", t.Pod + "-568022", "external_ids:container=" + t.Container, "mallory"}, nil)
	case 5:
		err = t.start("/mallory/"+t.Container, nil, []string{"--pod=" + t.Container[:12], "--netns=" + t.NetNS}, nil)
	case 6:
		err = t.start("/usr/bin/containerd", os.Environ(), []string{t.Namespace + "/" + t.Pod}, nil)
	case 7:
		err = t.start("/mallory/"+t.Pod, t.environ("CHECK", t.Container), []string{t.IfName}, nil)
	}
	if err != nil {
		return 0
	}
	return 1
}

// pace calls do until the results add up to n or end has come, evenly spread over a duration; 0: without pauses.
func pace(n int64, within time.Duration, end time.Time, done, failed *atomic.Int64, do func() int64) {
	began := time.Now()
	for done.Load() < n && time.Now().Before(end) {
		due := began.Add(time.Duration(float64(within) * float64(done.Load()) / float64(n)))
		if wait := time.Until(due); wait > time.Millisecond {
			time.Sleep(wait)
		}
		made := do()
		done.Add(made)
		if made == 0 {
			failed.Add(1)
		}
	}
}
