package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/reach"
	"github.com/cniscope/cniscope/pkg/text"
)

// latecomers looks why a pod's first connection was late. The zero value looks for nobody.
type latecomers struct {
	after time.Duration // what counts as late; 0: nothing does
	looks chan struct{} // one for each look under way
}

// looksMax is how many pods are looked at at once; of more it is only said that they were late. A look reads the
// cgroup of every process of the node once.
const looksMax = 2

func newLatecomers(after time.Duration) latecomers {
	return latecomers{after: after, looks: make(chan struct{}, looksMax)}
}

// take reports a connection that came late. It does not keep its caller waiting: what the kernel counted is read
// beside it.
func (l latecomers) take(log *slog.Logger, node string, r pipeline.Result) {
	c := r.Connected
	after := time.Duration(c.At - c.End)
	if l.after == 0 || after < l.after {
		return
	}
	say := func(more ...any) {
		log.Warn("a pod's first connection came late", append([]any{
			"pod", c.Pod.Namespace + "/" + c.Pod.Name, "node", node, "after", text.Round(after),
			"local", c.Local, "remote", c.Remote, "trace_id", hex.EncodeToString(r.Trace.ID[:]),
		}, more...)...)
	}
	select {
	case l.looks <- struct{}{}:
	default:
		say()
		return
	}
	id := c.ContainerID
	go func() {
		defer func() { <-l.looks }()
		if cause, says := triesOf(id).Why(); cause != "" {
			say("verdict", says, "cause", cause)
			return
		}
		say()
	}()
}

// triesOf reads what the kernel counted in the network namespace of a sandbox; nothing where it cannot be found.
func triesOf(sandbox string) reach.Tries {
	unknown := reach.Tries{Opened: 2} // of which nothing can be said
	if len(sandbox) < 12 {
		return unknown
	}
	own, err := procfs.OwnNamespace("net")
	if err != nil {
		return unknown
	}
	pids, err := procfs.All()
	if err != nil {
		return unknown
	}
	for _, pid := range pids {
		if !strings.Contains(procfs.CgroupOf(pid), sandbox) {
			continue
		}
		if ns, err := procfs.Namespace(pid, "net"); err != nil || ns == own {
			continue
		}
		read := func(name string) string { return countsOf(fmt.Sprintf("/proc/%d/net/%s", pid, name)) }
		if snmp := read("snmp"); snmp != "" {
			return reach.Parse(snmp, read("netstat"), read("arp"))
		}
	}
	return unknown
}

// countsMax is how much of a table is read: netstat has some 4 KB, a table of 1024 neighbours (gc_thresh3) 80 KB.
const countsMax = 128 << 10

func countsOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	all, _ := io.ReadAll(io.LimitReader(f, countsMax)) // what was read says what it says
	return string(all)
}
