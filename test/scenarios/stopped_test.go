//go:build linux

package scenarios

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
	"github.com/cniscope/cniscope/test/tied"
)

const stillDir = "/run/cniscope-scenario/still"

// stopTimes is the number of repetitions in TestWhoIsStoppedIsSaid; default 1.
const stopTimes = "CNISCOPE_TEST_TIMES"

func pidOf(s *scene, name string) (pid int) {
	harness.Until(s, name+" runs", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/comm")
		for _, file := range all {
			if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == name {
				pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
			}
		}
		return pid != 0
	})
	return pid
}

type still struct{ from, to int64 }

// stand waits twice as long as all before lasted: other plugins wait for the kernel's locks, a debugger starts slowly.
func stand(began time.Time) (s still) {
	s.from = standin.Now()
	time.Sleep(max(lost, 2*time.Since(began)))
	s.to = standin.Now()
	return s
}

// parked stops the plugin that reads the pipe, and writes before it continues: a debugger is slow.
func parked(s *scene, kind string) (still, error) {
	began := time.Now()
	goOn, err := standin.Stop(kind, pidOf(s, "parked"))
	if err != nil {
		return still{}, err
	}
	stood, written := stand(began), make(chan error, 1)
	go func() { written <- os.WriteFile(stillDir+"/park", []byte("go on"), 0) }()
	return stood, errors.Join(goOn(), <-written)
}

func injected(n *standin.Node) (last still) {
	for _, e := range n.Journal("") {
		if e.What == "injected" && e.Start > last.from {
			last = still{e.Start, e.Start + int64(lost)}
		}
	}
	return last
}

// heldByWhoStandsStill stops the holder of the plugin's lock, which its exit releases.
func heldByWhoStandsStill(_ *scene, kind string) (still, error) {
	began := time.Now()
	holder := exec.Command("flock", "-o", stillDir+"/lock", "sh", "-c", "echo held; exec cat")
	in, err1 := holder.StdinPipe()
	out, err2 := holder.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return still{}, err
	}
	defer in.Close()
	if err := tied.Start(holder); err != nil {
		return still{}, err
	}
	_, err1 = bufio.NewReader(out).ReadString('\n')
	goOn, err2 := standin.Stop(kind, holder.Process.Pid)
	if err := errors.Join(err1, err2, os.WriteFile(stillDir+"/park", []byte("go on"), 0)); err != nil { // the plugin locks now
		return still{}, err
	}
	stood := stand(began)
	err := errors.Join(goOn(), holder.Process.Kill())
	_ = holder.Wait()
	return stood, err
}

// A stopped, traced or frozen plugin, agent or lock holder is reported with a remedy.
func TestWhoIsStoppedIsSaid(t *testing.T) {
	times := 1
	if n, err := strconv.Atoi(os.Getenv(stopTimes)); err == nil {
		times = n
	}
	s := set(t, rig.Options{Nice: priority, Plugins: map[string][]byte{
		"locker": rig.Script(`[ "$CNI_COMMAND" != ADD ] || { read go <` + stillDir + `/park; flock ` + stillDir + `/lock true; }`),
	}}, slowly)
	s.record()
	harness.Check(t, errors.Join(os.RemoveAll(stillDir), os.MkdirAll(stillDir, 0o755), unix.Mkfifo(stillDir+"/park", 0o600)))
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	for _, who := range []struct {
		name  string
		chain func(kind string) []rig.Plugin
		does  func(*scene, string) (still, error) // beside the pod
		says  string
	}{
		{"plugin", func(string) []rig.Plugin { return []rig.Plugin{rig.Bridge(), rig.Test("parked")} }, parked, `plugin parked was `},
		{"agent", func(kind string) []rig.Plugin {
			return []rig.Plugin{asks(n, behind{inject: standin.Injection{Point: "agent.link", Kind: kind, Of: "agent", For: lost}})}
		}, nil, `vs-agent was `},
		{"holder", func(string) []rig.Plugin { return []rig.Plugin{rig.Bridge(), rig.Test("locker")} }, heldByWhoStandsStill, `still/lock.*, held by flock .*, which was `},
	} {
		for kind, said := range map[string][2]string{
			"stop":      {`stopped`, `kill -CONT \d+`},
			"trace":     {`traced by gdb \(pid \d+\)`, `kill gdb \(pid \d+\), or detach it`},
			"freeze":    {`frozen by /sys/fs/cgroup\S+/cgroup\.freeze`, `echo 0 > /\S+/cgroup\.freeze`},
			"freeze v1": {`frozen by /sys/fs/cgroup\S+/freezer\.state`, `echo THAWED > /\S+/freezer\.state`},
		} {
			t.Run(who.name+"/"+kind, func(t *testing.T) {
				s := s.in(t)
				s.prefix = who.name + "-" + strings.ReplaceAll(kind, " ", "-")
				s.network(s.prefix, who.chain(kind)...)
				for range times {
					s.standsStill(n, kind, who.does, who.says+said[0], said[1])
				}
			})
		}
	}
}

// standsStill runs a pod with a stopped process and checks its verdict. With a nil does, the node stops it.
func (s *scene) standsStill(n *standin.Node, kind string, does func(*scene, string) (still, error), says, remedy string) {
	stood, done := injected(n), make(chan error, 1)
	before := stood
	go func() {
		var err error
		if does != nil {
			stood, err = does(s, kind)
		}
		done <- err
	}()
	call := s.add(rig.PodOptions{}, false)
	harness.Check(s.T, <-done)
	if does == nil {
		harness.Until(s, "the injection is over", func() bool { stood = injected(n); return stood != before })
	}
	s.Logf("%.0f ms, %s: %s (%s)", call.Took(), call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"])
	for key, want := range map[string]string{"cniscope.verdict": says, "cniscope.remedy": remedy} {
		if !regexp.MustCompile(want).MatchString(call.Attrs[key]) {
			s.Errorf("%s is %q, want %s", key, call.Attrs[key], want)
		}
	}
	clock := time.Now().UnixNano() - standin.Now()
	for _, x := range call.Below("wait") {
		from, to := max(x.Start(), stood.from+clock), min(x.End(), stood.to+clock)
		if x.Name == "system call" && to-from > int64(lost)/2 {
			s.Errorf("it waits in system call %s for %s of the time it stood still", x.Attrs["cniscope.system_call"], time.Duration(to-from))
		}
	}
}
