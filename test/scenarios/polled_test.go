//go:build linux

package scenarios

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const pollDir = "/run/cniscope-scenario-poll"

// polled is a plugin that waits in a loop of tries and sleeps.
type polled struct {
	plugin string
	before func()
	fails  bool
	cause  string
	says   []string // parts of the verdict
	remedy string   // part of the remedy
	never  string   // in neither
}

func (p *polled) judged(s *scene) {
	s.Helper()
	call := s.add(rig.PodOptions{}, p.fails)
	cause, verdict, remedy := call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"]
	lacks := func(part string) bool { return !strings.Contains(verdict, part) }
	if cause != p.cause || slices.ContainsFunc(p.says, lacks) || !strings.Contains(remedy, p.remedy) ||
		p.never != "" && strings.Contains(verdict+remedy, p.never) {
		s.Errorf("%s: %s\n  → %s", cause, verdict, remedy)
	}
}

// The verdict names the file that a plugin polls for: a lock file of a dead or a living process, a lock directory, or a
// missing file. A plugin that only sleeps, or that makes sure that a directory exists, waits for no file.
func TestAPolledFileIsNamed(t *testing.T) {
	harness.Check(t, os.MkdirAll(pollDir, 0o755))
	t.Cleanup(func() { harness.Check(t, os.RemoveAll(pollDir)) })
	lock, lockDir, ready := pollDir+"/store.lock", pollDir+"/locked", pollDir+"/ready"
	until := func(done, then string) []byte {
		return rig.Script(`[ "$CNI_COMMAND" = ADD ] || exit 0
i=0
until ` + done + `; do
	sleep 0.3
	i=$((i+1))
	[ $i = 9 ] || continue
	` + then + `
done`)
	}
	const gaveUp = `echo '{"cniVersion":"1.0.0","code":11,"msg":"timed out"}'; exit 1`
	s := set(t, rig.Options{Nice: priority, Plugins: map[string][]byte{
		"locker":   until("echo $$ | dd conv=excl of="+lock+" 2>/dev/null", gaveUp),
		"director": until("mkdir "+lockDir+" 2>/dev/null", gaveUp),
		"poller":   until("[ -e "+ready+" ]", "break"),
		"dozer":    until("[ -e "+pollDir+" ] && [ $i = 8 ]", "break"),
		"maker":    until("mkdir -p "+pollDir+" && [ $i = 8 ]", "break"),
	}}, slowly)
	writtenBy := func(pid int) func() {
		return func() { harness.Check(t, os.WriteFile(lock, fmt.Appendf(nil, "%d\n", pid), 0o600)) }
	}
	for name, p := range map[string]polled{
		"dead": {
			plugin: "locker", before: writtenBy(1<<22 - 1), fails: true, cause: "lock_file",
			says: []string{
				"timed out", "lock file " + lock + " existed", "plugin locker tried to create it", "EEXIST",
				"process 4194303 wrote it and has exited",
			},
			remedy: "run rm " + lock,
		},
		"alive": {
			plugin: "locker", before: writtenBy(os.Getpid()), fails: true, cause: "lock_file",
			says:   []string{"lock file " + lock + " existed", fmt.Sprintf("(pid %d) wrote it", os.Getpid())},
			remedy: fmt.Sprintf("(pid %d) if it hangs", os.Getpid()), never: "is gone",
		},
		"directory": {
			plugin: "director", before: func() { harness.Check(t, os.Mkdir(lockDir, 0o700)) },
			fails: true, cause: "lock_file",
			says:   []string{"lock file " + lockDir, "mkdir: EEXIST", "before the call"},
			remedy: "run rmdir " + lockDir,
		},
		"missing": {
			plugin: "poller", cause: "missing_file",
			says:   []string{"file " + ready + " was missing; plugin poller tried to find it", "ENOENT"},
			remedy: "start the program that writes " + ready,
		},
		"coping": {
			plugin: "maker", cause: "slow_command", says: []string{"sleep"}, remedy: "remove the command sleep from", never: "/run",
		},
		"asleep": {
			plugin: "dozer", cause: "slow_command", says: []string{"sleep"}, remedy: "remove the command sleep from", never: pollDir,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T, s.prefix = t, name
			if p.before != nil {
				p.before()
			}
			s.network("net-"+name, rig.Bridge(), rig.Test(p.plugin))
			p.judged(&s)
			harness.Check(t, errors.Join(os.RemoveAll(lock), os.RemoveAll(lockDir)))
		})
	}
}

// What a call waits for is the same in ps and in the log while it hangs, and afterwards in its verdict.
func TestPsTheLogAndTheVerdictAgree(t *testing.T) {
	harness.Root(t)
	onAdd := func(body string) []byte { return rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then ` + body + "; fi") }
	ready := pollDir + "/agreed"
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"poller": onAdd("i=0; until [ -e " + ready + " ] || [ $i = 12 ]; do sleep 0.3; i=$((i+1)); done"),
		"runner": onAdd("timeout 3.5 tail -f /dev/null; :"),
		"contiv": harness.Must(os.ReadFile(harness.Must(os.Executable())(t)))(t),
	}}, slowly)
	for name, c := range map[string]struct {
		plugin rig.Plugin
		names  string
	}{
		"file":    {rig.Test("poller"), ready},
		"command": {rig.Test("runner"), "tail"},
		"agent":   {rig.Use(rig.Conf{"type": "contiv", "does": "elsewhere"}), "127.0.0.1:6785"},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T, s.prefix = t, name
			s.network("net-"+name, rig.Bridge(rig.Conf{"ipMasq": false}), c.plugin)
			defer answersAfter(t, "tcp", "127.0.0.1:6785", 3500*time.Millisecond, "")()
			added := make(chan *call)
			go func() { added <- s.add(rig.PodOptions{}, false) }()
			harness.Until(&s, "ps names it", func() bool {
				out, _ := exec.CommandContext(s.ctx, program, "ps", "--config", s.scope.Config()).Output()
				return strings.Contains(string(out), c.names)
			})
			verdict := (<-added).Attrs["cniscope.verdict"]
			harness.Says(t, verdict, c.names)
			harness.Says(t, strings.Join(lines(s.scope.LogText(), `msg="CNI call hangs" pod=shop/`+name), "\n"), c.names)
		})
	}
}
