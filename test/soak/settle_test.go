//go:build linux

package soak

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

// settleAccounts waits until each run is accounted for, and compares with the truth.
func (n *node) settleAccounts(ctx context.Context, e *entry, since int64, before map[string]float64, violate func(string, ...any)) {
	of := truth{
		names: n.namesOf(e.Pods), wall: time.Now().UnixNano() - protocol.Now(), lives: n.snapshot(),
		unsaid: anyFault(e.Plan, func(f fault) bool { return f.part == ofContainerd }),
	}
	var err error
	if of.runs, err = n.witness.seen(since); err != nil {
		violate("%v", err)
	}
	for _, name := range unwitnessed(of.runs, e.Pods) {
		violate("pod %s runs, and the witness has not seen its chain: it cannot judge", name)
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, bound)
	_ = eventually(bounded, func() error { // reported below
		e.Account = covered(of, n.collector.got())
		if len(e.Account.Unaccounted) > 0 {
			return fmt.Errorf("%d runs are missing", len(e.Account.Unaccounted))
		}
		return nil
	})
	cancel()
	e.Settled = time.Since(began).Seconds()
	total := 0.0
	e.Account.Lost = map[string]float64{}
	for name, v := range n.allLost() {
		if more := v - before[name]; more > 0 {
			e.Account.Lost[name] = more
			total += more
		}
	}
	switch missing := len(e.Account.Unaccounted); {
	case missing > 0 && float64(missing) <= 2*total: // a plugin with a lost start also hides its delegated plugin
		e.Account.CountedAsLost, e.Account.Unaccounted = missing, nil
	case missing > 0:
		violate("%d of %d runs are in no trace, and cniscope counts %v as lost:\n%s", missing, e.Account.Runs, total, strings.Join(e.Account.Unaccounted, "\n"))
	}
	if of.runs, err = n.witness.seen(0); err != nil { // includes late spans of the previous round
		violate("%v", err)
	}
	e.Account.False, e.Account.Checked = falsehoods(of, n.collector.got())
	for _, f := range e.Account.False {
		violate("false: %s", f)
	}
	n.witness.forget(since)
	n.collector.forget()
}

func unwitnessed(runs []run, pods []started) (names []string) {
	added := map[string]int{}
	for _, r := range runs {
		if r.Command == "ADD" {
			added[r.Container]++
		}
	}
	for _, p := range pods {
		if p.ID != "" && added[p.ID] < chainLength+1 { // and loopback
			names = append(names, p.Name)
		}
	}
	return names
}

func (n *node) namesOf(pods []started) map[string]string {
	names := maps.Clone(n.names)
	n.names = map[string]string{}
	for _, one := range pods {
		if one.ID != "" {
			names[one.ID], n.names[one.ID] = one.Name, one.Name
		}
	}
	return names
}

func (n *node) snapshot() (lives []life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lives {
		lives = append(lives, *l)
	}
	return lives
}

func (n *node) allLost() map[string]float64 {
	sum := map[string]float64{}
	lives := n.snapshot()
	if n.over() == "" {
		lost := n.lost()
		lives[len(lives)-1].Lost = lost
		n.mu.Lock()
		n.lives[len(n.lives)-1].Lost = lost // in case it dies
		n.mu.Unlock()
	}
	for _, l := range lives {
		for name, v := range l.Lost {
			sum[name] += v
		}
	}
	return sum
}
