//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/spans"
)

// nriActor is an NRI plugin.
const nriActor = "nri-actor"

type nriAct string

func (a nriAct) RunPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	if os.Getenv(api.PluginNameEnvVar) != "" && !strings.Contains(pod.GetAnnotations()["act"], string(a)) {
		return nil
	}
	switch a {
	case "sleeps", "naps":
		time.Sleep(1200 * time.Millisecond) // the fault
	case "hangs":
		select {}
	case "dies":
		time.Sleep(time.Second) // the fault
		os.Exit(1)
	}
	return nil
}

func (a nriAct) StopPodSandbox(context.Context, *api.PodSandbox) error { return a.ends("stop") }

func (a nriAct) RemovePodSandbox(context.Context, *api.PodSandbox) error { return a.ends("remove") }

// ends does what an act of a name such as stop-sleeps is.
func (a nriAct) ends(when string) error {
	switch act, _ := strings.CutPrefix(string(a), when+"-"); act {
	case "sleeps":
		if string(a) != act {
			time.Sleep(1400 * time.Millisecond) // the fault
		}
	case "hangs":
		if string(a) != act {
			select {}
		}
	}
	return nil
}

func (nriAct) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	fmt.Println("ready")
	return nil, nil
}

func actNRI() int {
	act, o := nriAct(os.Getenv(api.PluginNameEnvVar)), []stub.Option(nil)
	if act == "" {
		act = nriAct(os.Args[1])
		o = []stub.Option{stub.WithPluginName(os.Args[1]), stub.WithPluginIdx("10"), stub.WithSocketPath(os.Args[2])}
	}
	p, err := stub.New(act, o...)
	if err == nil {
		err = p.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runcWrapper does what files in DIR ask for before runc.
const runcWrapper = `#!/bin/sh
case " $* " in
*" create "*)
	for a; do
		[ "$before" = --bundle ] && bundle=$a
		before=$a
	done
	[ -e DIR/slow ] && sleep 1
	[ -e DIR/broken ] && exit 3
	[ -e DIR/hook ] && sed -i "s|^{|{\"hooks\":$(cat DIR/hook),|" "$bundle/config.json"
	;;
esac
exec RUNC "$@"
`

func (s *scene) started(pod string) (outer *spans.Span, below []*spans.Span) {
	s.Helper()
	harness.Until(s, "the start of "+pod, func() bool {
		all := harness.Must(spans.Read(s.spans))(s.T)
		outer, below = nil, nil
		for _, x := range all {
			if x.Attrs["k8s.pod.name"] == pod && x.Attrs["cniscope.kind"] == "start" {
				outer = x
			}
		}
		for _, x := range all {
			if outer != nil && x.TraceID == outer.TraceID && x.Attrs["cniscope.kind"] == "step" {
				below = append(below, x)
			}
		}
		return outer != nil
	})
	return outer, below
}

// acting runs an NRI plugin until the returned function ends it.
func (s *scene) acting(act string) (end func()) {
	s.Helper()
	actor := filepath.Join(s.TempDir(), nriActor)
	harness.Check(s.T, os.Symlink(harness.Must(os.Executable())(s.T), actor))
	cmd := exec.CommandContext(s.ctx, actor, act, s.rig.NRISocket())
	cmd.Stderr = os.Stderr
	out := harness.Must(cmd.StdoutPipe())(s.T)
	harness.Check(s.T, cmd.Start())
	harness.Must(out.Read(make([]byte, 8)))(s.T)
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// What delays a sandbox's start beside its network is named and drawn.
func TestWhatDelaysTheStartOfASandbox(t *testing.T) {
	startOf(t, rig.Options{})
}

func TestWhatDelaysTheStartOfASandboxOfContainerd17(t *testing.T) {
	startOf(t, rig.Options{Containerd: scope.Containerd(t, "containerd-1.7")})
}

func startOf(t *testing.T, ro rig.Options) {
	dir := t.TempDir()
	ro.Runc = filepath.Join(dir, "wrapped-runc")
	runc := filepath.Join(harness.Must(filepath.Abs("../tools/bin"))(t), "runc")
	harness.Check(t, os.WriteFile(ro.Runc, []byte(strings.NewReplacer("DIR", dir, "RUNC", runc).Replace(runcWrapper)), 0o755))
	hook := filepath.Join(dir, "sleepy-hook")
	harness.Check(t, os.WriteFile(hook, rig.Script("cat >/dev/null; sleep 1\n"), 0o755))
	s := set(t, ro, "[slow]\ncall = \"500ms\"\n[sampling]\nper_second = 0\n")
	s.network("pods", rig.Bridge())
	const slow, failed = "sandbox started slowly", "sandbox start failed"
	for _, c := range []struct {
		name, file, content, nri string
		fails                    bool
		message                  string
		says                     []string
		step                     string
	}{
		{name: "ordinary", step: "wrapped-runc start"},
		{
			name: "slow OCI runtime", file: "slow", message: slow, step: "sleep",
			says: []string{"wrapped-runc create ran sleep", "cause=oci_runtime"},
		},
		{
			name: "slow OCI hook", file: "hook", content: `{\"createRuntime\":[{\"path\":\"` + hook + `\"}]}`, message: slow, step: "sleepy-hook",
			says: []string{"wrapped-runc create ran OCI hook sleepy-hook", "cause=oci_hook"},
		},
		{
			name: "failing OCI runtime", file: "broken", fails: true, message: failed, step: "wrapped-runc create",
			says: []string{"wrapped-runc create exited 3", "cause=oci_runtime", `remedy="run kubectl describe pod`},
		},
		{name: "NRI plugin sleeps", nri: "sleeps", message: slow, step: "NRI nri-actor", says: []string{"NRI plugin nri-actor (pid", "ran RunPodSandbox", "cause=nri_plugin"}},
		{name: "NRI plugin hangs", nri: "hangs", message: failed, step: "NRI nri-actor", says: []string{"did not answer RunPodSandbox within 2", "cause=nri_plugin"}},
		{name: "NRI plugin dies", nri: "dies", message: failed, step: "NRI nri-actor", says: []string{"did not answer RunPodSandbox within", "and exited", "cause=nri_plugin"}},
		{name: "NRI plugin is quick", nri: "answers", step: "wrapped-runc create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file != "" {
				harness.Check(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o644))
				defer os.Remove(filepath.Join(dir, c.file))
			}
			if c.nri != "" {
				defer s.acting(c.nri)()
			}
			call := s.add(rig.PodOptions{}, c.fails)
			says := call.Attrs["cniscope.verdict"]
			if c.fails != strings.Contains(says, "but the runtime removed the network") || c.fails != strings.Contains(says, "wrapped-runc create exited 3") {
				t.Errorf("the ADD's verdict is %q", says)
			}
			pod := fmt.Sprintf("pod-%d", *s.pods)
			outer, below := s.started(pod)
			var names []string
			for _, x := range below {
				names = append(names, fmt.Sprintf("%s %.1f", x.Name, x.Took()))
			}
			t.Logf("%s: %.1f ms, runtime %.1f, unexplained %.1f: %s", pod, outer.Took(), outer.Ms("cniscope.time.between_runs_ms"),
				outer.Ms("cniscope.time.unexplained_ms"), strings.Join(names, ", "))
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, c.step+" ") }) {
				t.Errorf("no step %s", c.step)
			}
			if c.message == "" {
				if cause := outer.Attrs["cniscope.cause"]; cause == "oci_hook" || cause == "nri_plugin" {
					t.Errorf("%s: %s", cause, outer.Attrs["cniscope.verdict"])
				}
				return
			}
			said := lines(s.scope.LogText(), c.message+`" pod=shop/`+pod+" ")
			if len(said) != 1 {
				t.Fatalf("%q", said)
			}
			harness.Says(t, said[0], c.says...)
		})
	}
}

// A pre-installed plugin that delays a start is named among others, which answer at once.
func TestWhichPreinstalledNRIPluginDelaysTheStart(t *testing.T) {
	self := harness.Must(os.Executable())(t)
	s := set(t, rig.Options{NRIPlugins: map[string]string{
		"10-sleeps": self, "20-naps": self, "30-answers": self, "40-hangs": self, "50-dies": self,
	}}, "[slow]\ncall = \"500ms\"\n[sampling]\nper_second = 0\n")
	s.network("pods", rig.Bridge())
	const lost = "did not answer RunPodSandbox within "
	for _, c := range []struct{ act, says string }{
		{"sleeps", "NRI plugin sleeps (pid"},
		{"naps sleeps", "NRI plugins sleeps (pid"},
		{"naps", "NRI plugin naps (pid"},
		{"dies", "NRI plugin dies (pid"},
		{"hangs", "NRI plugin hangs (pid"},
	} {
		t.Run(c.act, func(t *testing.T) {
			s.add(rig.PodOptions{Annotations: map[string]string{"act": c.act}}, false)
			outer, _ := s.started(fmt.Sprintf("pod-%d", *s.pods))
			says := outer.Attrs["cniscope.verdict"]
			harness.Says(t, says, c.says)
			harness.Equal(t, outer.Attrs["cniscope.cause"], "nri_plugin", "cause")
			if fails := c.act == "dies" || c.act == "hangs"; fails != strings.Contains(says, lost) || strings.Contains(says, "answers") {
				t.Errorf("%q", says)
			}
		})
	}
}
