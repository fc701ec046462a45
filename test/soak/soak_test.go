//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

var program string // the cniscope under test

func TestMain(m *testing.M) {
	os.Exit(scope.Main(m, &program))
}

// settings are what a soak is told by its environment.
type settings struct {
	pods  int
	seed  uint64
	only  int // the one round to do; -1: all
	dir   string
	sizes sizes
}

func read(t *testing.T) settings {
	t.Helper()
	s := settings{pods: 60, seed: 1, only: -1, sizes: small}
	number := func(name string, to func(int)) {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			harness.Check(t, err)
			to(n)
		}
	}
	number("CNISCOPE_SOAK_PODS", func(n int) { s.pods = n })
	number("CNISCOPE_SOAK_SEED", func(n int) { s.seed = uint64(n) })
	number("CNISCOPE_SOAK_ROUND", func(n int) { s.only = n })
	if s.pods >= 300 {
		s.sizes = full
	}
	if s.dir = os.Getenv("CNISCOPE_SOAK_DIR"); s.dir == "" || s.only >= 0 {
		s.dir = t.TempDir()
	}
	return s
}

// replay is the command that does a round again.
func (s settings) replay(round int) string {
	return fmt.Sprintf("make soak SOAK_PODS=%d SOAK_SEED=%d SOAK_ROUND=%d", s.pods, s.seed, round)
}

// Pods come and go while everything around them dies.
func TestSoak(t *testing.T) {
	s := read(t)
	harness.Check(t, os.MkdirAll(s.dir, 0o700))
	d, err := openDiary(filepath.Join(s.dir, fmt.Sprintf("diary-%d-%d.jsonl", s.pods, s.seed)))
	harness.Check(t, err)
	t.Cleanup(func() { harness.Check(t, d.close()) })
	done, round := d.done()
	if done >= s.pods {
		t.Skipf("the diary has %d pods already", done)
	}
	ctx := harness.Context(t)
	n := newNode(ctx, t, s.dir)
	kinds := faults()
	for ; done < s.pods; round++ {
		if s.only >= 0 {
			round, done = s.only, s.pods
		}
		e := n.round(ctx, schedule(s.seed, round, s.sizes, kinds))
		if ctx.Err() != nil {
			t.Logf("interrupted in round %d, which is done again by the same command", round)
			break
		}
		for _, v := range e.Violations {
			t.Errorf("round %d: %s", round, v)
		}
		harness.Check(t, d.write(e))
		done += len(e.Pods)
		t.Logf("round %d: %s", round, e)
		if len(e.Violations) > 0 {
			t.Logf("again: %s\ncniscope's log:\n%s", s.replay(round), n.tail())
		}
		if n.over() != "" {
			t.Fatal("cniscope cannot be started again")
		}
	}
	t.Log("\n" + report(d.entries))
	for _, what := range grown(d.entries) {
		t.Errorf("with the pods of a life grow %s", what)
	}
}

// round does what a plan says, and waits until all is as before.
func (n *node) round(ctx context.Context, p plan) (e entry) {
	e = entry{Plan: p, Began: time.Now().UTC()}
	since, lost := protocol.Now(), n.allLost()
	violate := func(format string, args ...any) { e.Violations = append(e.Violations, fmt.Sprintf(format, args...)) }

	var asked atomic.Int64
	var doing sync.WaitGroup
	happened := make([]happening, len(p.Faults))
	asking := make(chan struct{}) // closed when all pods were asked for and answered
	for i, f := range p.Faults {
		doing.Go(func() {
			happened[i] = n.suffer(ctx, f, func() bool {
				select {
				case <-asking:
					return true
				default:
					return int(asked.Load()) >= f.After
				}
			})
		})
	}
	e.Pods = n.pods(ctx, p, &asked)
	close(asking)
	doing.Wait()
	e.Faults = happened
	n.judgePods(&e, violate)
	if how := n.over(); how != "" {
		if !mayEnd(p) {
			violate("cniscope %s, and nothing was done that may end it", how)
		}
		if err := n.start(ctx); err != nil {
			violate("cniscope does not start again: %v", err)
			return e
		}
	}

	undone := time.Now()
	bounded, cancel := context.WithTimeout(ctx, bound)
	err := n.asBefore(bounded, fmt.Sprintf("r%d-after", p.Round))
	cancel()
	e.Recovery = time.Since(undone).Seconds()
	if err != nil {
		violate("%s after the last fault was undone all is not as before: %v", bound, err)
	}
	if err := n.sweep(ctx); err != nil {
		violate("%v", err)
	}
	n.settleAccounts(ctx, &e, since, lost, violate)
	if e.Sample, err = n.sample(ctx); err != nil {
		violate("cniscope cannot be looked at: %v", err)
	}
	return e
}

// bound is how soon after the last fault was undone all is as before. Exports are tried again every 30 s.
const bound = 2 * time.Minute

// happening is a fault that was.
type happening struct {
	Kind string
	// Held is how long it lasted, in seconds.
	Held float64
	Err  string `json:",omitempty"`
	// Unsupported: this machine cannot do it.
	Unsupported bool `json:",omitempty"`
}

// suffer has a fault happen and undoes it.
func (n *node) suffer(ctx context.Context, p planned, now func() bool) happening {
	h := happening{Kind: p.Kind}
	fail := func(err error) happening {
		h.Err, h.Unsupported = err.Error(), errors.Is(err, errors.ErrUnsupported)
		return h
	}
	if err := pause(ctx, p.Delay, now); err != nil {
		return fail(err)
	}
	began := time.Now()
	undo, err := faultOf(p.Kind).begin(ctx, n)
	if err == nil {
		err = pause(ctx, p.Hold, func() bool { return true })
	}
	if undo != nil {
		if undoing := undo(ctx); err == nil {
			err = undoing
		}
	}
	h.Held = time.Since(began).Seconds()
	if err != nil {
		return fail(err)
	}
	return h
}

// pause waits for something, and then for a time.
func pause(ctx context.Context, d time.Duration, now func() bool) error {
	for !now() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// judgePods holds the runtime's answers against what may fail.
func (n *node) judgePods(e *entry, violate func(string, ...any)) {
	for _, h := range e.Faults {
		if h.Err != "" && !h.Unsupported {
			violate("%s: %s", h.Kind, h.Err)
		}
	}
	for _, one := range e.Pods {
		switch {
		case one.TimedOut:
			violate("pod %s: no answer within %s", one.Name, asking)
		case one.Err != "" && !mayFail(e.Plan):
			violate("pod %s failed, and nothing was done that fails it: %s", one.Name, one.Err)
		}
	}
}

func mayFail(p plan) bool { return anyFault(p, func(f fault) bool { return f.fails }) }

func mayEnd(p plan) bool { return anyFault(p, func(f fault) bool { return f.ends }) }

func anyFault(p plan, is func(fault) bool) bool {
	for _, f := range p.Faults {
		if is(faultOf(f.Kind)) {
			return true
		}
	}
	return false
}

// settleAccounts waits until each run of the round is accounted for, and holds what arrived against the truth.
func (n *node) settleAccounts(ctx context.Context, e *entry, since int64, before map[string]float64, violate func(string, ...any)) {
	of := truth{
		names: n.namesOf(e.Pods), wall: time.Now().UnixNano() - protocol.Now(), lives: n.snapshot(),
		unsaid: anyFault(e.Plan, func(f fault) bool { return f.part == ofContainerd }),
	}
	var err error
	if of.runs, err = n.witness.seen(since); err != nil {
		violate("%v", err)
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, bound)
	_ = eventually(bounded, func() error { // what is missing then is said below
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
	case missing > 0 && total > 0:
		e.Account.CountedAsLost, e.Account.Unaccounted = missing, nil
	case missing > 0:
		violate("%d of %d runs are in no trace and not counted as lost:\n%s", missing, e.Account.Runs, strings.Join(e.Account.Unaccounted, "\n"))
	}
	if of.runs, err = n.witness.seen(0); err != nil { // what arrives late, or twice, is of the round before
		violate("%v", err)
	}
	e.Account.False, e.Account.Checked = falsehoods(of, n.collector.got())
	for _, f := range e.Account.False {
		violate("false: %s", f)
	}
	n.witness.forget(since)
	n.collector.forget()
}

// namesOf are the pods that had a sandbox in this round or the one before.
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

// snapshot copies the lives so far.
func (n *node) snapshot() (lives []life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lives {
		lives = append(lives, *l)
	}
	return lives
}

// allLost is what all lives have lost so far, by reason.
func (n *node) allLost() map[string]float64 {
	sum := map[string]float64{}
	lives := n.snapshot()
	if n.over() == "" {
		lost := n.lost()
		lives[len(lives)-1].Lost = lost
		n.mu.Lock()
		n.lives[len(n.lives)-1].Lost = lost // what is known, should it die
		n.mu.Unlock()
	}
	for _, l := range lives {
		for name, v := range l.Lost {
			sum[name] += v
		}
	}
	return sum
}
