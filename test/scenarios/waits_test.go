//go:build linux

package scenarios

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// times sums the attributes that divide a call's time.
func (c *call) times() (sum float64) {
	for key := range c.attrs {
		if strings.HasPrefix(key, "cniscope.time.") {
			sum += c.ms(key)
		}
	}
	return sum
}

// accounted checks that a call's parts sum up to it with little unexplained.
func (c *call) accounted(t *testing.T) {
	t.Helper()
	if sum := c.times(); math.Abs(sum-c.took()) > 1e-5 {
		t.Errorf("the parts sum up to %f ms of %f", sum, c.took())
	}
	if u := c.ms("cniscope.time.unexplained_ms"); u > c.took()/10 {
		t.Errorf("%.1f of %.1f ms are unexplained: %s", u, c.took(), c.attrs["cniscope.biggest_part"])
	}
	if c.attrs["cniscope.partial"] != "" {
		t.Errorf("it is partial: %s", c.attrs["cniscope.partial_reason"])
	}
}

// hold locks a path until the returned function is called.
func hold(t *testing.T, path string) (free func()) {
	t.Helper()
	harness.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	harness.Check(t, err)
	harness.Check(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	return func() { f.Close() }
}

// The cause of a wait is the largest part of its call, but not of the control.
func TestWhatACallWaitsFor(t *testing.T) {
	legacy := t.TempDir()
	for _, name := range []string{"iptables", "ip6tables"} {
		harness.Check(t, os.Symlink("/usr/sbin/"+name+"-legacy", filepath.Join(legacy, name)))
	}
	s := set(t, rig.Options{Env: []string{"PATH=" + legacy + ":" + os.Getenv("PATH")}}, "")
	for _, c := range []struct {
		name    string
		control []rig.Plugin
		chain   []rig.Plugin
		holds   func(rig.Net) string
		part    string
		kind    string
		attr    string
		value   string
	}{{
		name: "host-local's lock", control: []rig.Plugin{rig.Bridge()},
		holds: func(n rig.Net) string { return filepath.Join(n.DataDir, n.Name, "lock") },
		part:  `^waiting for lock .*/lock, held by scenarios\.test`,
		kind:  "lock", attr: "cniscope.lock.path", value: `/lock$`,
	}, {
		name: "xtables lock", control: []rig.Plugin{rig.Bridge()},
		holds: func(rig.Net) string { return "/run/xtables.lock" },
		part:  `^waiting for lock /run/xtables\.lock \(ip6?tables\), held by scenarios\.test`,
		kind:  "lock", attr: "cniscope.lock.path", value: `^/run/xtables\.lock$`,
	}, {
		name: "IPv6 DAD", control: []rig.Plugin{rig.DualStack()}, chain: []rig.Plugin{rig.DualStack(rig.Conf{"enabledad": true})},
		part: `^waiting for IPv6 DAD, in plugin bridge`, kind: "dad", attr: "cniscope.address", value: `:`,
	}, {
		name: "a sleep", control: []rig.Plugin{rig.Bridge(), rig.Test("idler")}, chain: []rig.Plugin{rig.Bridge(), rig.Test("sleeper")},
		part: `^asleep, in plugin sleeper`, kind: "wait", attr: "cni.plugin", value: `^sleeper$`,
	}, {
		name: "a computation", control: []rig.Plugin{rig.Bridge(), rig.Test("idler")}, chain: []rig.Plugin{rig.Bridge(), rig.Test("computer")},
		part: `^plugin computer`,
	}, {
		name: "a peer that refuses", control: []rig.Plugin{rig.Bridge(), rig.Test("idler")}, chain: []rig.Plugin{rig.Bridge(), rig.Test("caller")},
		part: `^calling /run/cniscope-scenario/nobody\.sock, from plugin caller.*ENOENT`, kind: "agent", attr: "cniscope.errno", value: `^ENOENT$`,
	}} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.T = t
			name := strings.ToLower(regexp.MustCompile(`\W+`).ReplaceAllString(c.name, "-"))
			s.pods = len(name) * 100
			part := regexp.MustCompile(c.part)

			s.network(name+"-control", c.control...)
			control := s.add(rig.PodOptions{Name: name}, false)
			control.accounted(t)
			t.Logf("control: %.0f ms, mostly %s", control.took(), control.attrs["cniscope.biggest_part"])

			if c.chain == nil {
				c.chain = c.control
			}
			n := s.network(name, c.chain...)
			if c.holds != nil {
				defer holds(c.holds)(&s, n)()
			}
			call := s.add(rig.PodOptions{}, false)
			call.accounted(t)
			t.Logf("%.0f ms, mostly %s", call.took(), call.attrs["cniscope.biggest_part"])
			if !part.MatchString(call.attrs["cniscope.biggest_part"]) {
				t.Errorf("want %s", part)
			}
			// Plugins poll an address every 50 ms, and the kernel needs a moment even without DAD, so the
			// control may wait once or twice.
			if part.MatchString(control.attrs["cniscope.biggest_part"]) && control.ms("cniscope.biggest_part_ms") > call.ms("cniscope.biggest_part_ms")/5 {
				t.Errorf("the control has it, too: %s ms of %s", control.attrs["cniscope.biggest_part_ms"], call.attrs["cniscope.biggest_part_ms"])
			}
			if c.kind == "" {
				return
			}
			for _, x := range call.below(c.kind) {
				if regexp.MustCompile(c.value).MatchString(x.attrs[c.attr]) {
					return
				}
			}
			t.Errorf("no span of kind %s says %s =~ %s: %d spans", c.kind, c.attr, c.value, len(call.below(c.kind)))
		})
	}
}
