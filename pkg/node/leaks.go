package node

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

const (
	// leakPace is the least time between scans, leakPatience their timeout.
	leakPace     = time.Minute
	leakPatience = 5 * time.Second
)

type leaks struct {
	mu   sync.Mutex
	book leak.Book
}

func (m *leaks) Wants(body event.Body) bool {
	switch body.(type) {
	case *event.Lost, *event.Degraded:
		return true
	}
	return false
}

// Event forgets calls if a DEL may have been missed.
func (m *leaks) Event(e event.Event) {
	doubt := false
	switch b := e.Body.(type) {
	case *event.Lost:
		doubt = b.OfProcesses()
	case *event.Degraded:
		doubt = b.Feature == event.Probe
	}
	if doubt {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.book.Doubt()
	}
}

func (m *leaks) Result(result pipeline.Result) {
	r, is := result.(*pipeline.Judged)
	if !is {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	op := r.Operation
	for _, call := range op.Calls {
		failure := r.Judgement.Calls[call].Failure
		a := leak.Attachment{
			ContainerID: op.ContainerID, Network: call.Network, IfName: call.IfName, Pod: op.Pod,
			Since: clock.Time(call.End), Failed: failure != "", NetNS: call.NetNS,
		}
		switch {
		case a.ContainerID == "" || len(op.Partial) > 0 && call.Command == "DEL" && failure != "":
		case call.Command == "ADD":
			a.Set = leak.Set(call)
			m.book.Added(a)
		case call.Command == "DEL":
			m.book.Deleted(a, failure)
		}
	}
}

func (m *leaks) held() []leak.Attachment {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.book.Held()
	for i := range all {
		all[i].Since = clock.Reset(all[i].Since)
	}
	return all
}

func (m *leaks) look(ctx context.Context, n *node, o config.Options) {
	ask := asking(o, leakPatience)
	pace := min(max(o.Leaks.After/5, time.Second), leakPace)
	for clock.Wait(ctx, pace) {
		l, stuck, binDirs, err := doctor.Held(ctx, ask)
		if err != nil {
			n.log.Debug("attachments of sandboxes unknown", "error", err)
			continue
		}
		for _, flight := range n.inFlight() {
			l.Alive[flight.ContainerID] = true
		}
		m.mu.Lock()
		found, freed := m.book.Look(l, o.Leaks.After)
		late := m.book.Stuck(stuck.Attachments)
		m.mu.Unlock()
		if len(late) > 0 {
			n.reportStuck(stuck, late, l.Time)
		}
		for _, a := range found {
			reportLeak(n.log, n.name, a, l.Time, binDirs)
		}
		for _, a := range freed {
			n.log.Info("stale attachment released", attachment(n.name, a)...)
		}
	}
}

func reportLeak(log *slog.Logger, node string, a leak.Attachment, now time.Time, binDirs []string) {
	free := "run cniscope doctor, whose check leaked-networks names the leftovers"
	if a.File != "" {
		free = leak.Free([]string{a.File}, binDirs)
	}
	fields := append(attachment(node, a),
		"since", a.Since.UTC().Format(time.RFC3339), "for", now.Sub(a.Since).Round(time.Second))
	if a.Tried > 0 {
		fields = append(fields, "del_failed", a.Tried, "because", a.Says)
	}
	log.Warn("stale attachment found", append(fields, "remedy", free)...)
}

// reportStuck also adds a failed DEL of late to the node history.
func (n *node) reportStuck(stuck doctor.Stuck, late []leak.Attachment, now time.Time) {
	n.log.Warn("sandboxes cannot be stopped", append(attachment(n.name, late[0]),
		"verdict", stuck.Says(), "cause", event.LackConfiguration, "remedy", strings.Join(stuck.Remedy(), "; "))...)
	for _, a := range late {
		one := stuck.Of(a)
		n.history.Add(control.Line{
			Time: now, Namespace: a.Pod.Namespace, Pod: a.Pod.Name, PodUID: a.Pod.UID, Sandbox: a.ContainerID,
			Command: "DEL", IfName: a.IfName, Network: a.Network, Result: control.Failed, Certain: true,
			Cause: string(event.LackConfiguration), Verdict: one.Says(), Remedy: strings.Join(one.Remedy(), "; "),
		})
	}
}

func attachment(node string, a leak.Attachment) (fields []any) {
	return []any{
		"pod", a.Pod.Namespace + "/" + a.Pod.Name, "node", node,
		"network", a.Network, "ifname", a.IfName, "sandbox", a.ContainerID,
	}
}

func (m *leaks) readings() []meter.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.book.Readings()
}
