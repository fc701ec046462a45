//go:build linux

package scenarios

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const pollDir = "/run/cniscope-scenario-poll"

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
	finds := func(write func() error) func(*scene) func() {
		return func(s *scene) func() {
			harness.Check(s.T, write())
			return func() { harness.Check(s.T, errors.Join(os.RemoveAll(lock), os.RemoveAll(lockDir))) }
		}
	}
	writtenBy := func(pid int) func(*scene) func() {
		return finds(func() error { return os.WriteFile(lock, fmt.Appendf(nil, "%d\n", pid), 0o600) })
	}
	polls := func(plugin string) []rig.Plugin { return []rig.Plugin{rig.Bridge(), rig.Test(plugin)} }
	for _, c := range []incident{
		{
			id: "dead", chain: polls("locker"), before: writtenBy(1<<22 - 1), fails: true, cause: "lock_file",
			says: []string{
				"timed out", "lock file " + lock + " existed", "plugin locker tried to create it", "EEXIST",
				"process 4194303 wrote it and has exited",
			},
			remedy: "run rm " + lock,
		},
		{
			id: "alive", chain: polls("locker"), before: writtenBy(os.Getpid()), fails: true, cause: "lock_file",
			says:   []string{"lock file " + lock + " existed", fmt.Sprintf("(pid %d) wrote it", os.Getpid())},
			remedy: fmt.Sprintf("(pid %d) if it hangs", os.Getpid()), never: "is gone",
		},
		{
			id: "directory", chain: polls("director"), before: finds(func() error { return os.Mkdir(lockDir, 0o700) }),
			fails: true, cause: "lock_file",
			says:   []string{"lock file " + lockDir, "mkdir: EEXIST", "before the call"},
			remedy: "run rmdir " + lockDir,
		},
		{
			id: "missing", chain: polls("poller"), cause: "missing_file",
			says:   []string{"file " + ready + " was missing; plugin poller tried to find it", "ENOENT"},
			remedy: "start the program that writes " + ready,
		},
		{
			id: "coping", chain: polls("maker"), cause: "slow_command", says: []string{"sleep"}, remedy: "remove the command sleep from", never: "/run",
		},
		{
			id: "asleep", chain: polls("dozer"), cause: "slow_command", says: []string{"sleep"}, remedy: "remove the command sleep from", never: pollDir,
		},
	} {
		t.Run(c.id, func(t *testing.T) {
			verdict := s.in(t).suffersFrom(c).Attrs["cniscope.verdict"]
			if c.never != "" && strings.Contains(verdict, c.never) {
				t.Errorf("it names %s: %s", c.never, verdict)
			}
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
			s := s.in(t)
			s.prefix = name
			s.network("net-"+name, rig.Bridge(rig.Conf{"ipMasq": false}), c.plugin)
			defer answersAfter(t, "tcp", "127.0.0.1:6785", 3500*time.Millisecond, "")()
			added := make(chan *call)
			go func() { added <- s.add(rig.PodOptions{}, false) }()
			harness.Until(s, "ps names it", func() bool {
				return strings.Contains(s.ask("ps"), c.names)
			})
			verdict := (<-added).Attrs["cniscope.verdict"]
			harness.Says(t, verdict, c.names)
			harness.Says(t, strings.Join(lines(s.scope.LogText(), `msg="CNI call hangs" pod=shop/`+name), "\n"), c.names)
		})
	}
}
