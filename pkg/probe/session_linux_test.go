package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

func TestTheContainersThatAServerStartsAreNotItsWork(t *testing.T) {
	dir := t.TempDir()
	address, forged := filepath.Join(dir, "agent.sock"), plugin(t, "forged", "true")
	anchors := anchor.New()
	probing := ownProbing(t, Options{Anchors: anchors})
	environment := "'" + strings.Join(forged.Env, "' '") + "'"
	for name, enters := range map[string]string{
		"as every OCI runtime does": "setsid --wait unshare --mount ",
		"and a child of that":       "setsid --wait unshare --mount sh -c '\"$@\"; true' sh ",
		"in more namespaces":        "setsid --wait unshare --mount --net --pid --fork ",
		"that a daemon has started": "setsid --wait setsid --wait unshare --mount ",
	} {
		t.Run(name, func(t *testing.T) {
			inner := filepath.Join(dir, "container")
			script := fmt.Sprintf("#!/bin/sh\ntrue --pod=%s\necho {} | env %s %s\n", container, environment, forged.Path)
			outer := filepath.Join(dir, "runtime")
			for file, script := range map[string]string{inner: script, outer: "#!/bin/sh\nsleep 0.001\n" + enters + inner + "\n"} {
				harness.Check(t, os.WriteFile(file, []byte(script), 0o755))
			}
			_ = os.Remove(address)
			agent := startAgent(t, address, runs+"="+outer)
			anchors.Serves("/run/test.sock", agent.Pid)
			o := probing.observe(t, func(o *observed) {
				o.agents = []int{agent.Pid}
				harness.Check(t, acting(t, "dial", "unix "+address).Run())
			})
			execs := o.execs()
			if !slices.ContainsFunc(execs, func(e *event.Exec) bool { return e.Name == "sleep" }) {
				t.Errorf("what it runs itself was not seen: %s", printed(o, execs))
			}
			for _, e := range execs {
				// On the host it may be a plugin, but not an agent's.
				if e.Caller == event.CallerAgent || len(e.Mentions) > 0 || e.Name == "true" && !e.Root {
					t.Errorf("%s %q, caller %q, mentions %q", e.Name, e.Args, e.Caller, e.Mentions)
				}
			}
		})
	}
}

func TestAServerThatWasNotToldOfIsLeftAgain(t *testing.T) {
	address := filepath.Join(t.TempDir(), "agent.sock")
	agent := startAgent(t, address)
	observeProbe(t, Options{}, func(p *Probe, o *observed) {
		o.agents = []int{agent.Pid}
		harness.Check(t, agent.Signal(unix.SIGSTOP))
		cmd := acting(t, "dial", "unix "+address)
		harness.Check(t, cmd.Start())
		o.until(t, "the call", func(b event.Body) bool { _, is := b.(*event.Connect); return is })
		kernel.Each(p.kernel.Life.Accounts, func(root *kernel.Key, a *kernel.LifeAccount) { // its quota is free again
			a.Whole = uint64(clock.Monotonic() + int64(time.Hour))
			_ = p.kernel.Life.Accounts.Put(*root, *a)
		})
		harness.Check(t, agent.Signal(unix.SIGCONT))
		harness.Check(t, cmd.Wait())
		followed := func() (is bool) {
			kernel.Each(p.kernel.Life.Processes, func(_ *uint32, entry *kernel.LifeProcess) { is = is || int(entry.Self.Pid) == agent.Pid })
			return is
		}
		if !followed() {
			t.Fatal("it was never followed")
		}
		harness.Until(t, "it is followed no more", func() bool { return !followed() })
	})
}

func TestAFullTableOfStartsIsCounted(t *testing.T) {
	cmd := plugin(t, "fake", "true")
	bundle := filepath.Join(t.TempDir(), container)
	harness.Check(t, os.Mkdir(bundle, 0o755))
	// Wherever the environment lies, its search for CNI_COMMAND finds a part of it, also in a shim's.
	runtime := newShell(t, "env", "--unset=CNI_COMMAND", "PARTS=COMMCOMM.COMMCOMM.COMMCOMM.COMMCOMM", "sh")
	shim := fmt.Sprintf("(cd %s && exec env true)\n", bundle)
	o := observeProbe(t, Options{Anchors: serving(t, runtime.Process.Pid)}, func(p *Probe, _ *observed) {
		starts := p.kernel.Life.Starts
		for pid := range starts.MaxEntries() {
			harness.Check(t, starts.Put(1<<30+pid, kernel.LifeStart{}))
		}
		env := ""
		for _, kv := range cmd.Env {
			env += fmt.Sprintf(" '%s'", kv)
		}
		runtime.run(t, fmt.Sprintf("env%s %s\n", env, cmd.Path)+shim)
		harness.Until(t, "the loss is counted", func() bool { return p.Stats().Lost["table of sandbox starts full"] > 0 })
	})
	if o.lost() != 0 {
		t.Errorf("calls lost %d events", o.lost())
	}
}
