package judge_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/timeline"
)

var update = flag.Bool("update", false, "write testdata/verdicts.txt anew")

// ruled is a call with a verdict.
type ruled struct {
	pod, command string
	*judge.Verdict
}

func (r ruled) String() string {
	said := fmt.Sprintf("%s %s %s: %s\n", r.pod, r.command, r.Cause, r.Says)
	if r.Remedy != "" {
		said += "  → " + r.Remedy + "\n"
	}
	return said
}

// replay judges a recording by its own options.
func replay(t *testing.T, path string) (all []ruled) {
	t.Helper()
	in, err := record.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var options struct {
		Timeline timeline.Options
		Judge    judge.Options
	}
	if err := json.Unmarshal(in.Header().Options, &options); err != nil {
		t.Fatal(err)
	}
	options.Timeline.Images, options.Timeline.Facts = 2000, 20000
	line := timeline.New(options.Timeline)
	take := func(ops []*model.Operation) {
		for _, op := range ops {
			judgement := options.Judge.Judge(op)
			for _, call := range op.Calls {
				if v := judgement.Calls[call].Verdict; v != nil {
					judge.Plain(t, v.Remedy)
					all = append(all, ruled{op.Pod.Name, call.Command, v})
				}
			}
		}
	}
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		take(line.Apply(e))
	}
	take(line.Flush())
	return all
}

// Recordings of real CNIs (Antrea 2.4.1 on Open vSwitch 3.1, Cilium 1.19.4), each with one artificial delay. They
// lack earlier connections and some threads of agents: without the true cause, no other may be claimed.
func TestVerdictsOfRealRecordings(t *testing.T) {
	for file, pods := range map[string]map[string]struct {
		cause               judge.Cause
		says, never, remedy string
	}{
		"antrea": {
			"ipam-command":   {cause: judge.CauseCommand, says: `plugin host-local ran sleep$`},
			"ipam-itself":    {cause: judge.CauseSleep, says: `plugin host-local slept$`},
			"ipam-lock":      {cause: judge.CauseLock, says: `waited for file lock /var/lib/cni/networks/antrea/lock$`, remedy: `host-local`},
			"agent-killed":   {cause: judge.CauseEnded, says: `antrea-agent \(pid \d+\) exited 1.09s after it was called$`, remedy: `kubectl logs --previous`},
			"stall-agent":    {cause: judge.CauseStopped, says: `; antrea-agent was stopped for 2\.\d+s$`, remedy: `kill -CONT`},
			"stall-vswitchd": {cause: judge.CauseAgent, never: `futex|waits in`},
			"stall-ovsdb":    {cause: judge.CauseAgent, never: `futex|waits in`},
			"crowd1":         {cause: judge.CauseAgent, never: `futex|waits in`},
			"crowd8":         {cause: judge.CauseAgent, never: `futex|waits in`},
		},
		// Faults beside Antrea: a flow of 24 scenarios without the bursts of healthy pods. A pod's DEL is "NAME DEL".
		"antrea-faults": {
			"both":      {cause: judge.CausePeer, says: `waited for ovsdb-server \(stopped\), through antrea-agent; 1\.16s: .* file lock .*, held by flock \(pid 13951, child of python3\)`, remedy: `kill -CONT 11969 to resume ovsdb-server`},
			"oom1":      {cause: judge.CauseOOM, says: `antrea-agent \(pid \d+\) was OOM-killed`, remedy: `memory limit of antrea-agent`},
			"krs":       {cause: judge.CauseEnded, says: `antrea-agent \(pid \d+\) exited 1\.06s after it was called`, remedy: `kubectl logs --previous`},
			"tdb0":      {cause: judge.CausePeer, says: `waited for ovsdb-server \(stopped\)`, remedy: `kill -CONT 11969`},
			"tdb1":      {cause: judge.CausePeer, says: `serving another call, waited for ovsdb-server \(stopped\)`, remedy: `kill -CONT 11969`},
			"tdb29":     {cause: judge.CausePeer, says: `serving another call, waited for ovsdb-server \(stopped\)`, remedy: `kill -CONT 11969`},
			"cancel":    {cause: judge.CauseFailed, says: `^plugin antrea was killed by SIGKILL after 1\.5s`, remedy: `^$`},
			"dl1 DEL":   {cause: judge.CausePeer, says: `waited for ovsdb-server \(stopped\)`, remedy: `kill -CONT 11969`},
			"dl2 DEL":   {cause: judge.CausePeer, says: `waited for ovs-vswitchd \(stopped\)`, remedy: `kill -CONT 11976`},
			"noapi":     {cause: judge.CauseRefused, says: `dial unix /var/run/antrea/cni.sock: connect: connection refused""(; portmap, bandwidth never ran)?$`, remedy: `^start antrea-agent`},
			"noapi DEL": {cause: judge.CauseRefused, says: `dial unix /var/run/antrea/cni.sock: connect: connection refused""(; portmap, bandwidth never ran)?$`, remedy: `^start antrea-agent`},
			"full":      {cause: judge.CauseFailed, says: `^plugin host-local failed .*no IP addresses available`, never: `ovs-vswitchd`, remedy: `leaked-leases`},
			"quoag":     {cause: judge.CauseStarved, says: `waited for a CPU$`, never: `range`, remedy: `^raise the CPU limit of antrea-agent`},
			"vsk":       {cause: judge.CauseRestarted, says: `ovs-vswitchd \(pid 11976\) exited .*; the new process`, never: `waited for ovsdb-server$`, remedy: `^fix why ovs-vswitchd exited`},
			"dbg2":      {cause: judge.CausePeer, says: `waited for ovsdb-server \(stopped\)`, remedy: `detach the debugger of`},
			"rst":       {cause: judge.CauseRefused, says: `dial unix /var/run/antrea/cni.sock: connect: connection refused""(; portmap, bandwidth never ran)?$`, remedy: `^start antrea-agent`},
		},
		"cilium-cold-burst": {
			"cold-0": {cause: judge.CauseCommand, says: `cilium-agent at /var/run/cilium/cilium.sock, serving this call or one of 2 others, ran clang \(\d times\), while plugin cilium-cni waited$`, remedy: `^raise the CPU limit of cilium-agent`},
			"cold-1": {cause: judge.CauseCommand, says: `cilium-agent at /var/run/cilium/cilium.sock, serving this call or one of 2 others, ran clang \(\d times\), while plugin cilium-cni waited$`, remedy: `^raise the CPU limit of cilium-agent`},
			"cold-2": {cause: judge.CauseCommand, says: `cilium-agent at /var/run/cilium/cilium.sock, serving this call or one of 2 others, ran clang \(\d times\), while plugin cilium-cni waited$`, remedy: `^raise the CPU limit of cilium-agent`},
		},
		"cilium-agent-stopped": {"mid-0": {cause: judge.CauseStopped, says: `; cilium-agent was stopped for 2\.9\d*s$`, remedy: `kill -CONT`}},
		"cilium-eight-at-once": {"eight-7": {cause: judge.CauseAgent, never: `futex|waits in`}},
		"cilium-rate-limited":  {"limit-0": {cause: judge.CauseBusy, never: `futex|waits in`, remedy: `--api-rate-limit`}},
		"standin-peers": { // test/scenarios, TestPeersOfTheAgent
			"stall-vswitchd-102":  {cause: judge.CausePeer, says: `plugin vs-cni waited for vs-switchd \(stopped\), through vs-agent and vs-db$`, remedy: `kill -CONT`},
			"slow-vswitchd-201":   {cause: judge.CausePeer, says: `waited for vs-db, through vs-agent`, remedy: `^$`},
			"stall-ovsdb-301":     {cause: judge.CausePeer, says: `waited for vs-db \(stopped\), through vs-agent`, remedy: `kill -CONT`},
			"stall-flows-401":     {cause: judge.CausePeer, says: `waited for vs-switchd \(stopped\), through vs-agent`, remedy: `kill -CONT`},
			"frozen-501":          {cause: judge.CausePeer, says: `waited for vs-db \(frozen\)`, remedy: `cgroup\.freeze`},
			"busy-peer-601":       {cause: judge.CausePeer, says: `waited for vs-db \(on a CPU\)`, remedy: `perf record`},
			"uninterruptible-701": {cause: judge.CausePeer, says: `waited for vs-db \(blocked in kernel function percpu_rwsem_wait\)`, remedy: `fsfreeze -u`},
		},
		"standin-crowd": { // TestACrowdBehindTheAgent
			"crowd-0": {cause: judge.CausePeer, says: `plugin vs-cni waited while vs-agent, serving this call or one of 7 others, waited for vs-switchd \(stopped\), through vs-db$`, remedy: `^run kill -CONT`},
			"crowd-7": {cause: judge.CausePeer, says: `plugin vs-cni waited while vs-agent, serving this call or one of 7 others, waited for vs-switchd \(stopped\), through vs-db$`, remedy: `^run kill -CONT`},
		},
	} {
		said, told := map[string]string{}, map[string]bool{}
		all := replay(t, filepath.Join("testdata", file+".rec.gz"))
		for _, r := range all {
			name := strings.TrimSuffix(r.pod+" "+r.command, " ADD")
			want, asked := pods[name]
			said[r.pod] += r.String()
			if told[name] = true; !asked {
				continue
			}
			if r.Cause != want.cause || !regexp.MustCompile(want.says).MatchString(r.Says) || !regexp.MustCompile(want.remedy).MatchString(r.Remedy) ||
				want.never != "" && regexp.MustCompile(want.never).MatchString(r.Says+r.Remedy) {
				t.Errorf("of %s it says\n%swant %+v", name, r, want)
			}
		}
		for pod := range pods {
			if !told[pod] {
				t.Errorf("%s has no verdict", pod)
			}
		}
		same(t, file, said)
	}
}

// same compares all verdicts with reviewed ones.
func same(t *testing.T, file string, said map[string]string) {
	t.Helper()
	var got strings.Builder
	for _, pod := range slices.Sorted(maps.Keys(said)) {
		got.WriteString(said[pod])
	}
	golden := filepath.Join("testdata", file+".txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s: if the change is meant: go test ./pkg/judge -run Recordings -update\n got %s\nwant %s", golden, got.String(), want)
	}
}
