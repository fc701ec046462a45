//go:build linux

package scenarios

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

const (
	randomPoints = "CNISCOPE_TEST_POINTS"
	randomSeed   = "CNISCOPE_TEST_SEED"
	// fewPoints is the default; with manyPoints or more, enough statements must be certain.
	fewPoints, manyPoints = 4, 20
	enoughStatements      = 1000
	perWrong              = 30 // points, of which one may be charged elsewhere
)

// kinds maps injected faults to the expected largest part of the call; %s stands for the wait.
var kinds = map[string]map[string]string{
	"agent": {
		"sleep": `^plugin \S+ waited for vs-agent`, "compute": `^plugin \S+ waited for vs-agent`, "stop": `^plugin \S+ waited for vs-agent.*stopped`, "freeze": `^plugin \S+ waited for vs-agent.*frozen`,
		"command": `^command vs-agent > vs-ctl`, "command's child": `^command vs-agent > vs-ctl > sleep`, "anonymous command": `^command vs-agent > vs-ctl`,
		"lock": `for file lock \S+/store.lock`, "rtnl": `for kernel lock rtnl`,
	},
	"ipam": {
		"sleep": `^plugin vs-ipam slept`, "compute": `plugin vs-ipam`, "command": `^command vs-ctl`, "command's child": `^command vs-ctl > sleep`,
	},
	"db": {
		"sleep": `^plugin vs-cni waited for vs-db`, "compute": `^plugin vs-cni waited for vs-db.*CPU`, "stop": `^plugin vs-cni waited for vs-db \(stopped\)`, "freeze": `^plugin vs-cni waited for vs-db \(frozen`,
		"lock": `vs-db.*store.lock|store.lock.*vs-db|^plugin vs-cni waited for vs-db`,
	},
	"switch": {
		"sleep": `^plugin vs-cni waited for vs-switchd`, "compute": `^plugin vs-cni waited for vs-switchd.*CPU`, "stop": `^plugin vs-cni waited for vs-switchd \(stopped\)`, "freeze": `^plugin vs-cni waited for vs-switchd \(frozen`,
		"command": `vs-ctl|^plugin vs-cni waited for vs-switchd`, "command's child": `vs-ctl|^plugin vs-cni waited for vs-switchd`,
	},
}

func draw(dice *rand.Rand) behind {
	for {
		point := standin.Points[dice.IntN(len(standin.Points))]
		program, at, _ := strings.Cut(point, ".")
		names := make([]string, 0, len(kinds[program]))
		for kind := range kinds[program] {
			names = append(names, kind)
		}
		slices.Sort(names)
		kind := names[dice.IntN(len(names))]
		if kind == "rtnl" && (at == "begin" || at == "ipam") { // no interface yet
			continue
		}
		// The process that the database waits for is found only if it is stopped: it was asked
		// before.
		if still := kind == "stop" || kind == "freeze"; point == "switch.update" && (!still || !harness.FirstPIDs()) {
			continue
		}
		c := behind{inject: standin.Injection{Point: point, Kind: kind, Of: program, For: lost}, says: kinds[program][kind]}
		if kind == "stop" && dice.IntN(2) == 0 { // of the next callee
			switch point {
			case "agent.port":
				c.inject.Of = "db"
			case "agent.flows":
				c.inject.Of = "switch"
			}
			c.says = kinds[c.inject.Of][kind]
		}
		if !slices.Contains([]string{"stop", "freeze"}, kind) {
			c.inject.Of = ""
		}
		return c
	}
}

func throw(t *testing.T) (points int, dice *rand.Rand) {
	points, seed := fewPoints, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv(randomPoints)); err == nil {
		points = n
	}
	if n, err := strconv.ParseUint(os.Getenv(randomSeed), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%s=%d %s=%d", randomPoints, points, randomSeed, seed)
	return points, rand.New(rand.NewPCG(seed, 0))
}

// Time lost at random points behind the agent is attributed to its place.
func TestRandomPointsBehindTheAgent(t *testing.T) {
	points, dice := throw(t)
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}, TCP: dice.IntN(3) == 0 && harness.FirstPIDs()})
	s.network("warm", asks(n, behind{}))
	s.add(rig.PodOptions{}, false)

	right := 0
	for i := range points {
		c := draw(dice)
		s.prefix = fmt.Sprint("point-", i)
		s.network(s.prefix, asks(n, c))
		call := s.add(rig.PodOptions{}, false)
		truth := c.heldUp(t, n, call.Attrs["sandbox.id"])
		what, ms := call.Attrs["cniscope.biggest_part"], call.charged()
		ok := ms >= 0.95*truth && regexp.MustCompile(c.says).MatchString(what)
		if ok {
			right++
		}
		t.Logf("%v %s %s of %q: %.0f of %.0f ms: %s\n%s (%s)", ok, c.inject.Point, c.inject.Kind, c.inject.Of, ms, truth, what,
			call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"])
	}
	t.Logf("%d of %d are charged to the place", right, points)
	if wrong := points - right; wrong > max(1, points/perWrong) {
		t.Errorf("%d of %d are charged to another place", wrong, points)
	}
	s.prefix = "certain"
	s.network("certain", asks(n, behind{}))
	for round := 0; ; round++ {
		s.burst(fmt.Sprint("certain-", round))
		if points < manyPoints || s.certain(n, false) >= enoughStatements {
			break
		}
	}
	t.Logf("%d statements are certain, and right", s.certain(n, true))
}

func (s *scene) burst(name string) {
	s.Helper()
	const pods = 8
	var all errgroup.Group
	for i := range pods {
		all.Go(func() error {
			return s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprintf("%s-%d", name, i)})
		})
	}
	harness.Check(s, all.Wait())
	for i := range pods {
		s.call(fmt.Sprintf("%s-%d", name, i))
	}
}
