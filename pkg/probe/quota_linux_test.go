package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

func flood(times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	said := make(chan error)
	for range 2 {
		go func() {
			r, err := unix.NewIfreq("lo")
			for range n / 2 {
				if err == nil {
					err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r)
				}
			}
			said <- err
		}()
	}
	return errors.Join(<-said, <-said)
}

func TestAFloodIsPaidForByItsRoot(t *testing.T) {
	flooder, other := acting(t, "flood", "100000"), plugin(t, "other", "true; (sleep 0.01; true); sleep 0.01; sleep 0.01; sh -c true; exit 3")
	o := observeProbe(t, Options{}, func(*Probe, *observed) {
		harness.Check(t, flooder.Start())
		if err := other.Run(); err == nil {
			t.Error("the other plugin fails, and must be seen to")
		}
		harness.Check(t, flooder.Wait())
	})
	execs := o.execs()
	root := func(name string) event.Process {
		i := slices.IndexFunc(execs, func(x *event.Exec) bool { return x.Name == name && x.Root })
		if i < 0 {
			t.Fatalf("no %s: %s", name, printed(o, execs))
		}
		return execs[i].Process
	}
	guilty := root("flood")
	var lost uint64
	for _, l := range all[*event.Lost](o) {
		if l.Reason != "over quota" || l.Process != guilty {
			t.Errorf("lost: %+v", l)
		}
		lost += l.Count
	}
	if lost == 0 || lost != o.stats.Lost["over quota"] {
		t.Errorf("%d events are said to be lost, %d were", lost, o.stats.Lost["over quota"])
	}
	var told, first, last int64
	for _, e := range o.events {
		if q, ok := e.Body.(*event.Request); ok && q.Process == guilty {
			if told++; first == 0 {
				first = e.Time
			}
			last = e.Time
		}
	}
	// At least 152 bytes and 128 of overhead each.
	if most := (int64(kernel.Quota(1<<20)) + last - first) / (280 * kernel.ByteTime); told == 0 || told > most+1 {
		t.Errorf("%d events were told, at most %d may be", told, most)
	}
	if told+int64(lost) < 100_000 {
		t.Errorf("%d told and %d lost, of 100,000", told, lost)
	}
	if x := o.exit(guilty); x == nil || x.Unseen {
		t.Errorf("its end: %+v", x)
	}
	var programs []string
	for _, x := range execs {
		if x.Process == guilty {
			continue
		}
		programs = append(programs, x.Name)
		if e := o.exit(x.Process); e == nil || e.Unseen {
			t.Errorf("%s has no end: %+v", x.Name, e)
		}
	}
	slices.Sort(programs)
	harness.EqualSlices(t, programs, []string{"other", "sh", "sleep", "sleep", "sleep"}, "the other plugin ran")
	if x := o.exit(root("other")); x == nil || x.Code != 3 {
		t.Errorf("the other plugin's end: %+v", x)
	}
}

func TestManyFloodsLeaveRoom(t *testing.T) {
	const each = 8
	var floods, others []*exec.Cmd
	for range each {
		floods, others = append(floods, acting(t, "flood", "20000")), append(others, plugin(t, "other", "true; sh -c true; exit 3"))
	}
	o := observeProbe(t, Options{}, func(_ *Probe, o *observed) {
		o.mu.Lock() // block the sink
		defer o.mu.Unlock()
		for _, flood := range floods {
			harness.Check(t, flood.Start())
		}
		for _, flood := range floods {
			harness.Check(t, flood.Wait())
		}
		for _, other := range others {
			if err := other.Run(); err == nil {
				t.Error("the other plugin fails, and must be seen to")
			}
		}
	})
	guilty, quiet := map[event.Process]bool{}, 0
	for _, x := range o.execs() {
		if x.Name == "flood" && x.Root {
			guilty[x.Process] = true
		} else if e := o.exit(x.Process); x.Root && e != nil && e.Code == 3 {
			quiet++
		}
	}
	if len(guilty) != each || quiet != each {
		t.Errorf("%d floods and %d others were seen from beginning to end, of %d each", len(guilty), quiet, each)
	}
	for _, l := range all[*event.Lost](o) {
		if l.Reason != "over quota" || !guilty[l.Process] {
			t.Errorf("lost: %+v", l)
		}
	}
}

// Two threads lose their root's first events at once.
func TestEveryLossOfARootIsItsOwn(t *testing.T) {
	o := observeProbe(t, Options{}, func(*Probe, *observed) {
		for range 40 {
			harness.Check(t, acting(t, "flood", "12000").Run())
		}
	})
	lost := all[*event.Lost](o)
	for _, l := range lost {
		if l.Process == "" {
			t.Errorf("lost: %+v", l)
		}
	}
	if len(lost) < 40 {
		t.Errorf("%d of 40 floods lost events", len(lost))
	}
}

// Refused children of a root must not become roots.
func TestNoRootTakesTheWholeTable(t *testing.T) {
	const processes = 64
	for how, test := range map[string]struct {
		start string
		most  int
	}{
		"children": {`sleep 600 & p="$p $!";`, processes/4 + 3}, // they live until all were started
		// Refused orphans must not use up the share of others' roots.
		"orphans": {"(sh -c 'sleep 0.3; sleep 2' &);", 600}, // which make room when they exit
	} {
		t.Run(how, func(t *testing.T) {
			noRootTakesTheWholeTable(t, processes, test.most, "i=0; while [ $i -lt 200 ]; do "+test.start+" i=$((i+1)); done; read go; [ -z \"$p\" ] || kill $p; wait")
		})
	}
}

func noRootTakesTheWholeTable(t *testing.T, processes, most int, script string) {
	greedy := plugin(t, "greedy", script)
	goes := harness.Must(greedy.StdinPipe())(t)
	other := plugin(t, "other", "sleep 0.01; (sleep 0.01; true)")
	o := observeProbe(t, Options{Processes: processes}, func(p *Probe, o *observed) {
		harness.Check(t, greedy.Start())
		defer func() {
			_ = goes.Close()
			_ = greedy.Wait()
			nobodyIsCastOut(t, p)
		}()
		for o.lost() == 0 {
			if greedy.ProcessState != nil {
				t.Fatal("nothing was lost")
			}
		}
		harness.Check(t, other.Run())
	})
	execs, roots := o.execs(), 0
	var guilty event.Process
	for _, x := range execs {
		if x.Root {
			roots++
		}
		if x.Name == "greedy" {
			guilty = x.Process
		}
	}
	harness.Equal(t, roots, 2, "roots", printed(o, execs))
	if n := len(all[*event.Fork](o)); n > most {
		t.Errorf("%d processes were followed", n)
	}
	for _, l := range all[*event.Lost](o) {
		if l.Reason != "process table full" || l.Process != guilty {
			t.Errorf("lost: %+v", l)
		}
	}
	for _, x := range execs {
		if x.Name == "other" && o.exit(x.Process) == nil {
			t.Error("the other plugin has no end")
		}
	}
}

func TestAServerThatWasNotFollowedIsForgotten(t *testing.T) {
	dir := openFolder(t)
	self := harness.Must(os.Executable())(t)
	server, address := filepath.Join(dir, "agent"), filepath.Join(dir, "agent.sock")
	harness.Check(t, os.Symlink(self, server))
	greedy := plugin(t, "greedy", fmt.Sprintf(
		"i=0; while [ $i -lt 40 ]; do sleep 3 & i=$((i+1)); done; env -i PATH=$PATH ARGUMENT=%s %s & echo $! >%s/pid; wait", address, server, dir))
	observeProbe(t, Options{Processes: 64}, func(p *Probe, _ *observed) {
		harness.Check(t, greedy.Start())
		harness.Listens(t, os.Getpid(), address)
		harness.Check(t, acting(t, "dial", "unix "+address).Run())
		pid := harness.Must(os.ReadFile(filepath.Join(dir, "pid")))(t)
		n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
		harness.Check(t, errors.Join(err, syscall.Kill(n, syscall.SIGKILL)))
		_ = greedy.Wait()
		nobodyIsCastOut(t, p)
	})
}

func nobodyIsCastOut(t *testing.T, p *Probe) {
	t.Helper()
	harness.Until(t, "nothing is kept of what was not followed", func() bool {
		var counted uint32
		harness.Check(t, p.kernel.Life.Beliefs.Lookup(uint32(kernel.LifeBeliefOUTCASTS), &counted))
		return counted == 0 && length[uint32, uint64](p.kernel.Life.Outcasts) == 0
	})
}

func (o *observed) lost() (n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range all[*event.Lost](o) {
		n += l.Count
	}
	return n
}

func TestAccountsGoWithTheirRoots(t *testing.T) {
	cmd := plugin(t, "several", "(sleep 0.05; true) & read go; wait")
	goes := harness.Must(cmd.StdinPipe())(t)
	observe(t, func(o *observed) {
		harness.Check(t, cmd.Start())
		harness.Until(t, "it has an account", func() bool { return accountsOf(o) == 1 })
		_, err := goes.Write([]byte("on\n"))
		harness.Check(t, errors.Join(err, cmd.Wait()))
		harness.Equal(t, accountsOf(o), 0, "accounts afterwards")
	})
}

func accountsOf(o *observed) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kernel.Each(o.probe.kernel.Life.Accounts, func(root *kernel.Key, _ *kernel.LifeAccount) {
		if o.ours.Mine(kernel.ProcessOf(*root)) {
			n++
		}
	})
	return n
}

// A run may lose something between the look at its losses and its end.
func TestALossIsReportedOnceWhenItsRunEnds(t *testing.T) {
	harness.Root(t)
	side := harness.Must(kernel.Open(kernel.Options{Ring: 1 << 16, Processes: 16}, func(*kernel.Side) {}))(t)
	defer side.Close(0)
	l := losses{kernel: side, said: map[kernel.LifeLostKey]uint64{}}
	lose := func(all uint64) {
		reason := uint32(kernel.LifeCounterLOST_CALLS)
		harness.Check(t, side.Life.Losses.Put(kernel.LifeLostKey{Root: kernel.Key{Tgid: 1}, Reason: reason}, all))
		harness.Check(t, side.Life.Counters.Put(reason, all))
	}
	lose(5)
	harness.Equal(t, l.new()[0].Count, 5, "at first")
	lose(7)
	l.forget(nil)
	harness.Equal(t, l.new()[0].Count, 2, "since")
	l.forget(nil)
	harness.Equal(t, len(l.said), 0, "remembered")
}
