//go:build linux

package cnis

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	points = 20
	right  = 19              // minimum of correct attributions
	lost   = 2 * time.Second // at each
	share  = 0.95            // minimum share of the lost time
)

type fault struct {
	name   string
	weight int
	place  string // expected in the verdict
	asked  string // the agent's log line before the fault can act, after its rate limiter
	inject func(n *node, pod string, after time.Duration) func() pod
}

var faults = []fault{
	{"the agent stands still", 8, `cilium-agent.*stopped`, "", stops(ciliumAgent)},
	{"the API server stands still", 5, `kube-apiserver`, begins, stops("kube-apiserver")},
	{"etcd stands still", 5, `etcd`, begins, stops("etcd")},
	{"the network loses what is sent to the API server", 3, `kube-apiserver`, begins, loses},
	{"clang is slow", 2, `clang`, "", slowClang},
}

const begins = "Create endpoint request"

func stops(program string) func(*node, string, time.Duration) func() pod {
	return within(func(n *node) { n.signal(program, unix.SIGSTOP) }, func(n *node) { n.signal(program, unix.SIGCONT) })
}

// loses drops packets to the API server for two seconds.
var loses = within(func(n *node) {
	n.run("nft", "add table ip fault; add chain ip fault in { type filter hook input priority 0; }; add rule ip fault in tcp dport 6443 drop")
}, func(n *node) { n.run("nft", "delete table ip fault") })

// within starts a fault some time after a pod's plugin and ends it two seconds later.
func within(begin, end func(*node)) func(*node, string, time.Duration) func() pod {
	return func(n *node, name string, after time.Duration) func() pod {
		n.Helper()
		wait := n.begin(name, map[string]string{"app": name})
		harness.Until(n, "the plugin runs", func() bool { return len(plugins()) > 0 })
		time.Sleep(after)
		begin(n)
		time.Sleep(lost)
		end(n)
		return wait
	}
}

// slowClang restarts the agent, whose compiler then lasts two seconds longer.
func slowClang(n *node, name string, _ time.Duration) func() pod {
	n.Helper()
	n.kill(ciliumAgent)
	harness.Check(n.T, os.RemoveAll(filepath.Join(stateDir, "state", "templates")))
	n.startAgent(nil)
	wrapper := filepath.Join(n.fault, "clang")
	harness.Check(n.T, os.WriteFile(wrapper, []byte(fmt.Sprintf("#!/bin/sh\nsleep %g\nexec %s/clang \"$@\"\n", lost.Seconds(), clang)), 0o755))
	wait := n.begin(name, web)
	return func() pod {
		p := wait()
		harness.Check(n.T, os.Remove(wrapper))
		return p
	}
}

// Two seconds lost at random points are attributed to their place if the agent's log shows a wait.
func TestPoints(t *testing.T) {
	if !apart(t) {
		return
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CNISCOPE_TEST_SEED"); s != "" {
		seed = harness.Must(strconv.ParseUint(s, 10, 64))(t)
	}
	t.Logf("CNISCOPE_TEST_SEED=%d", seed)
	some := drawn(t)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // what is drawn is to be drawn again
	n := newNode(t)
	n.observe()
	n.startWarmAgent(nil)
	n.warm()
	hits, charged := 0, 0
	for i := 0; hits < points && i < 3*points; i++ {
		f, name := draw(random, some), fmt.Sprintf("point-%d", i)
		after := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
		p := f.inject(n, name, after)()
		harness.Check(t, p.err)
		c := n.call(name)
		if gap := n.silence(p, c, f.asked); gap < time.Duration(share*float64(lost)) {
			t.Logf("not hit: %s, %s after the plugin: the agent was silent of it for %s", f.name, after, gap)
		} else if c.cause() == "cpu_starved" {
			t.Logf("not hit: %s: this node has too much to do, which is what is said", f.name)
		} else {
			hits++
			if n.charges(c, f) {
				charged++
				t.Logf("right: %s, %s after the plugin", f.name, after)
			} else {
				t.Logf("WRONG: %s, %s after the plugin", f.name, after)
			}
		}
		n.remove(p)
	}
	t.Logf("%d of %d points that were hit are charged to their place", charged, hits)
	if hits < points || charged < right {
		t.Errorf("want %d of %d", right, points)
	}
}

// The agent stops for two seconds at nine moments of an ADD, a tenth of an ordinary one apart.
func TestMoments(t *testing.T) {
	if !apart(t) {
		return
	}
	const moments = 9
	n := newNode(t)
	n.observe()
	n.startWarmAgent(nil)
	n.warm()
	step := time.Duration(n.call(n.add("ordinary").name).Took()*float64(time.Millisecond)) / (moments + 1)
	for hits, i := 0, 0; hits < moments; i++ {
		if i == 3*moments {
			t.Fatalf("%d of %d moments were hit", hits, moments)
		}
		name := fmt.Sprintf("moment-%d", i)
		p := stops(ciliumAgent)(n, name, time.Duration(hits)*step)()
		harness.Check(t, p.err)
		c := n.call(name)
		if gap := n.silence(p, c, ""); gap < time.Duration(share*float64(lost)) || c.cause() == "cpu_starved" {
			t.Logf("moment %d was not hit: the agent was silent of it for %s", hits, gap)
			step -= step / 10
		} else {
			hits++
			n.says(c, "agent_stopped", `cilium-agent was stopped for`, `kill -CONT`)
		}
		n.remove(p)
	}
}

// drawn returns the faults that match CNISCOPE_TEST_FAULTS, all by default.
func drawn(t *testing.T) (some []fault) {
	t.Helper()
	wanted := harness.Must(regexp.Compile(os.Getenv("CNISCOPE_TEST_FAULTS")))(t)
	for _, f := range faults {
		if wanted.MatchString(f.name) {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		t.Fatalf("CNISCOPE_TEST_FAULTS=%s: no fault is called so", wanted)
	}
	return some
}

func draw(random *rand.Rand, some []fault) fault {
	sum := 0
	for _, f := range some {
		sum += f.weight
	}
	at := random.IntN(sum)
	return some[slices.IndexFunc(some, func(f fault) bool { at -= f.weight; return at < 0 })]
}

var logTime = regexp.MustCompile(`^time=(\S+) `)

// silence returns the longest gap in the agent's log of a pod during its call, after the line asked.
func (n *node) silence(p pod, c *call, asked string) (longest time.Duration) {
	n.Helper()
	from := time.Unix(0, c.Start())
	at := []time.Time{from, time.Unix(0, c.End())}
	for line := range strings.Lines(n.logOf(ciliumAgent)) {
		m := logTime.FindStringSubmatch(line)
		if m == nil || !strings.Contains(line, "containerID="+p.sandbox[:10]) {
			continue
		}
		when := harness.Must(time.Parse(time.RFC3339Nano, m[1]))(n.T)
		if when.After(at[0]) && when.Before(at[1]) {
			at = append(at, when)
		}
		if asked != "" && strings.Contains(line, asked) {
			from = when
		}
	}
	at = slices.DeleteFunc(at, func(t time.Time) bool { return t.Before(from) })
	slices.SortFunc(at, time.Time.Compare)
	for i := range at[1:] {
		longest = max(longest, at[i+1].Sub(at[i]))
	}
	return longest
}

var accounts = regexp.MustCompile(`^(\S+) of \S+ (.*)$`)

// charges reports whether a verdict attributes the two seconds correctly.
func (n *node) charges(c *call, f fault) bool {
	n.Helper()
	m := accounts.FindStringSubmatch(c.verdict())
	if m == nil || !regexp.MustCompile(f.place).MatchString(m[2]) {
		return false
	}
	took, err := time.ParseDuration(m[1])
	return err == nil && took >= time.Duration(share*float64(lost))
}
