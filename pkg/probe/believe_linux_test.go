package probe

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// A container in a pod, and the rights that it keeps.
const (
	container7 = "unshare --net --mount --pid --fork "
	netAdmin   = "setpriv --bounding-set=-all,+net_admin,+setpcap "
	// A service user with systemd's AmbientCapabilities. The test's files are root's.
	service    = "setpriv --reuid 65534 --inh-caps +net_admin,+dac_override,+sys_admin --ambient-caps +net_admin,+dac_override"
	noSysAdmin = "setpriv --bounding-set=-sys_admin "
)

const forks = "forks "

const orphan = "orphan "

// attempt is an attempt to pass for a plugin.
type attempt struct {
	name string
	in   string
	want event.Caller // empty: refused
}

// attempts runs all by a shell, some as its own children. With p, /proc must agree with the kernel.
func attempts(t *testing.T, p *Probe, runs []attempt) string {
	t.Helper()
	script := "touch $0.$CNI_IFNAME.done"
	if p != nil {
		script = "touch $0.$CNI_IFNAME.runs; until test -e $0.$CNI_IFNAME.asked; do :; done; " + script
	}
	cmd := plugin(t, "fake", script)
	if p != nil {
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			for i, r := range runs {
				asProcSays(t, p, fmt.Sprintf("%s.%d", cmd.Path, i), cmd.Path, i, r)
			}
		}()
		t.Cleanup(func() { <-asked })
	}
	var s strings.Builder
	for i, r := range runs {
		env := slices.DeleteFunc(slices.Clone(cmd.Env), func(kv string) bool { return strings.HasPrefix(kv, "CNI_IFNAME=") })
		line := fmt.Sprintf("env 'CNI_IFNAME=%d' '%s' %s", i, strings.Join(env, "' '"), cmd.Path)
		file := fmt.Sprintf("%s.%d", cmd.Path, i)
		written := func(script string) {
			harness.Check(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755))
		}
		switch in, rest, _ := strings.Cut(r.in, " "); in + " " {
		case forks:
			written(rest + line + "\ntrue\n")
			line = file
		case orphan:
			written(`until grep -q "^PPid:.$1$" /proc/$$/status; do :; done; exec ` + rest + line + "\n")
			line = fmt.Sprintf("sh -c 'setsid %s '$$' & exit'; until test -e %s.%d.done; do :; done", file, cmd.Path, i)
		default:
			line = r.in + line
		}
		s.WriteString(line + "\n")
	}
	return s.String()
}

func asProcSays(t *testing.T, p *Probe, file, program string, place int, r attempt) {
	for _, err := os.Stat(file + ".runs"); err != nil; _, err = os.Stat(file + ".runs") {
		if t.Context().Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	memory, found := procfs.NewMemory(), false
	pids, _ := procfs.All()
	for _, pid := range pids {
		args, _ := memory.Arguments(pid)
		env, _ := memory.Environment(pid)
		if found = len(args) == 2 && args[1] == program && slices.Contains(env, fmt.Sprintf("CNI_IFNAME=%d", place)); !found {
			continue
		}
		harness.Equal(t, decode.Callers[p.caller(uint32(pid))], r.want, r.name, "/proc says")
		break
	}
	if !found {
		t.Errorf("%s is not in /proc", r.name)
	}
	if err := os.WriteFile(file+".asked", nil, 0o644); err != nil {
		t.Error(err)
	}
}

func believed(t *testing.T, o *observed, runs []attempt) {
	t.Helper()
	got := map[string]event.Caller{}
	for _, x := range o.execs() {
		if x.Root && x.Call != nil {
			got[x.Call.IfName] = x.Caller
		}
	}
	for i, r := range runs {
		switch caller, seen := got[fmt.Sprint(i)]; {
		case caller != r.want && !seen:
			t.Errorf("%s is refused, and should be believed as %q", r.name, r.want)
		case caller != r.want:
			t.Errorf("%s is believed as %q, and should be as %q", r.name, caller, r.want)
		}
	}
}

type shell struct {
	*exec.Cmd
	input io.WriteCloser
}

func newShell(t *testing.T, command ...string) *shell {
	t.Helper()
	harness.Root(t)
	s := &shell{Cmd: exec.Command(command[0], command[1:]...)}
	s.Stderr = t.Output()
	var err error
	if s.input, err = s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	harness.Check(t, tied.Start(s.Cmd))
	t.Cleanup(func() { _ = s.Process.Kill() })
	return s
}

func (s *shell) run(t *testing.T, script string) {
	t.Helper()
	if _, err := io.WriteString(s.input, script); err != nil {
		t.Fatal(err)
	}
	s.input.Close()
	harness.Check(t, s.Wait())
}

func serving(t *testing.T, pid int) *anchor.Set {
	t.Helper()
	s := anchor.New()
	if !s.Serves("/run/test.sock", pid) {
		t.Fatalf("%d is no anchor", pid)
	}
	return s
}

func TestWhatTheRuntimeStartsIsBelievedWhereverItRuns(t *testing.T) {
	runs := []attempt{
		{"a child", "", event.CallerRuntime},
		{"a child in a mount namespace of its own", "unshare --mount ", event.CallerRuntime},
		{"a child with nothing but CAP_NET_ADMIN", "unshare --mount --net " + netAdmin, event.CallerRuntime},
		{"a child without either right", "unshare --mount setpriv --bounding-set=-net_admin,-sys_admin ", ""},
		{"a grandchild in the host's mount namespace", forks, event.CallerHost},
		{"a grandchild in a mount namespace of its own", forks + "unshare --mount ", ""},
		{"what a container runs", container7, ""},
		{"a child in a session of its own", "unshare --mount setsid --wait ", ""},
		{"a child", "", event.CallerRuntime},
	}
	runtime := newShell(t, "sh")
	o := observeProbe(t, Options{Anchors: serving(t, runtime.Process.Pid)}, func(p *Probe, _ *observed) {
		runtime.run(t, attempts(t, p, runs))
	})
	believed(t, o, runs)
}

func TestWhoIsNotTheRuntimesIsBelievedOnTheHostOnly(t *testing.T) {
	runs := []attempt{
		{"root on the host", "", event.CallerHost},
		{"CAP_NET_ADMIN on the host", netAdmin, event.CallerHost},
		{"a service user with CAP_NET_ADMIN on the host", service + " ", ""},
		{"a service user with CAP_SYS_ADMIN on the host", service + ",+sys_admin ", event.CallerHost},
		{"a sidecar with CAP_NET_ADMIN", container7 + netAdmin, ""},
		{"a pod with CAP_SYS_ADMIN", container7, ""},
		{"a pod with CAP_SYS_ADMIN in the host's network", "unshare --mount ", ""},
		{"root on the host", "", event.CallerHost},
	}
	runtime, other := newShell(t, "sh"), newShell(t, "sh")
	o := observeProbe(t, Options{Anchors: serving(t, runtime.Process.Pid)}, func(p *Probe, _ *observed) {
		other.run(t, attempts(t, p, runs))
	})
	believed(t, o, runs)
}

func TestWhereNoRuntimeIsKnownWhoeverOwnsTheNodeIsBelieved(t *testing.T) {
	runs := []attempt{
		{"a pod with CAP_SYS_ADMIN", container7, event.CallerPrivileged},
		{"a pod without it", container7 + noSysAdmin, ""},
		{"a sidecar with CAP_NET_ADMIN", container7 + netAdmin, ""},
		{"root on the host", "", event.CallerHost},
	}
	other := newShell(t, "sh")
	o := observe(t, func(o *observed) { other.run(t, attempts(t, o.probe, runs)) })
	believed(t, o, runs)
}

func TestAnOrphanThatTheRuntimeAdoptedIsNotItsOwn(t *testing.T) {
	runs := []attempt{
		{"an orphan", orphan + "unshare --mount ", ""},
		{"a child", "unshare --mount ", event.CallerRuntime},
	}
	runtime := newShell(t, os.Args[0], "-test.run", "TestHelperSubreaper$")
	o := observeProbe(t, Options{Anchors: serving(t, runtime.Process.Pid)}, func(p *Probe, _ *observed) {
		runtime.run(t, attempts(t, p, runs))
	})
	believed(t, o, runs)
}

// TestHelperSubreaper is no test: it becomes a shell that adopts orphans.
func TestHelperSubreaper(t *testing.T) {
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Skip("helps others")
	}
	harness.Check(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	t.Fatal(unix.Exec("/bin/sh", []string{"sh"}, os.Environ()))
}

func TestWhoeverHasTheNumberOfARuntimeThatIsGoneIsNobody(t *testing.T) {
	runs := []attempt{{"a child of somebody else", "unshare --mount ", ""}}
	other := newShell(t, "sh")
	gone := serving(t, other.Process.Pid).List()
	gone[0].Start -= int64(procfs.Tick)
	o := observeProbe(t, Options{}, func(p *Probe, _ *observed) {
		harness.Check(t, setAnchors(p.kernel, gone))
		other.run(t, attempts(t, nil, runs))
	})
	believed(t, o, runs)
}

func TestARootlessRuntimeIsBelievedOnlyIfTheOperatorSaysSo(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		want := map[bool]event.Caller{true: event.CallerRootless}[allowed]
		runs := []attempt{
			{"a child in its user namespace", "", want},
			{"a grandchild", forks, ""},
			{"a child in a user namespace below", "unshare --user --map-root-user ", ""},
		}
		runtime := newShell(t, "unshare", "--user", "--map-root-user", "--mount", "sh")
		o := observeProbe(t, Options{Rootless: allowed}, func(p *Probe, _ *observed) {
			anchors := serving(t, runtime.Process.Pid).List()
			anchors[0].Rootless = allowed
			harness.Check(t, setAnchors(p.kernel, anchors))
			runtime.run(t, attempts(t, nil, runs))
		})
		believed(t, o, runs)
	}
}

func TestWhatIsBelievedWithoutAnAnchorHasAShareOfTheTable(t *testing.T) {
	const room = 16
	cmd := plugin(t, "hung", "read line; true")
	hang := func() (all []*shell) {
		for range room {
			all = append(all, newShell(t, cmd.Path))
		}
		return all
	}
	for _, kv := range cmd.Env {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	runtime := newShell(t, "env", "--unset=CNI_COMMAND", "sh")
	o := observeProbe(t, Options{Processes: room, Anchors: serving(t, runtime.Process.Pid)}, func(p *Probe, _ *observed) {
		for range 3 { // the room is free again
			refused := p.Stats().Lost["share of the process table full"]
			hung := hang()
			// The process runs the program shortly before the kernel side sees it.
			// Foreign plugins count, too.
			harness.Eventually(t, func() error {
				if got := p.Stats().Lost["share of the process table full"] - refused; got < room/2 {
					return fmt.Errorf("%d of %d were refused, want half", got, room)
				}
				return nil
			})
			for _, s := range hung {
				s.run(t, "\n")
			}
		}
		hang()
		runtime.run(t, attempts(t, nil, []attempt{{in: "unshare --mount "}}))
	})
	callers := map[event.Caller]int{}
	for _, x := range o.execs() {
		if x.Root {
			callers[x.Caller]++
		}
	}
	// Each time, a foreign plugin may hold one of the places.
	host, most := callers[event.CallerHost], 4*room/2
	if host > most || host < most-4 || callers[event.CallerRuntime] != 1 || len(callers) != 2 {
		t.Errorf("believed %v, want %d of the host and one of the runtime", callers, most)
	}
	harness.Equal(t, o.stats.Lost["process table full"], 0, "found the table full")
}
