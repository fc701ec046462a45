//go:build linux

package scenarios

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// function of a generated program. The first is called for each request, the others by one before.
type function struct {
	Package, Receiver, Name string
	Calls                   []*function
	Inline                  bool
}

func (f *function) full() string {
	name := "main." + f.Name
	if f.Receiver != "" {
		name = "main.(*" + f.Receiver + ")." + f.Name
	}
	if f.Package != "main" {
		name = "example.test/lossy/" + f.Package + strings.TrimPrefix(name, "main")
	}
	return name
}

// drawn returns random functions of three packages, which call each other as a tree.
func drawn(dice *rand.Rand) (all []*function) {
	names := []string{
		"cmdAdd", "Allocate", "ConfigureLink", "getNetAdapter", "AddPort", "WaitForPort", "InstallFlows", "syncRules", "Lease",
		"Renew", "lookUp", "Attach", "ensureChain", "Validate", "Announce", "Commit",
	}
	for i, name := range names {
		f := &function{Package: []string{"main", "ipam", "flow"}[dice.IntN(3)], Name: name, Inline: dice.IntN(3) == 0}
		if dice.IntN(2) == 0 {
			f.Receiver = "Server"
		}
		if i == 0 {
			f.Package, f.Receiver = "main", ""
		}
		if f.Package != "main" { // packages cannot import each other in a circle
			f.Name = strings.ToUpper(name[:1]) + name[1:]
		}
		var callers []*function
		for _, c := range all {
			if c.Package == "main" || c.Package == f.Package {
				callers = append(callers, c)
			}
		}
		if len(callers) > 0 {
			caller := callers[dice.IntN(len(callers))]
			caller.Calls = append(caller.Calls, f)
		}
		all = append(all, f)
	}
	return all
}

// lossy writes and builds the program with these functions: plugin, agent, and a command that sleeps.
func lossy(t *testing.T, all []*function, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	source := template.Must(template.ParseFiles("testdata/lossy.tmpl"))
	for _, name := range []string{"main", "ipam", "flow"} {
		var out bytes.Buffer
		harness.Check(t, source.Execute(&out, map[string]any{
			"Package": name, "First": all[0], "Functions": slices.DeleteFunc(slices.Clone(all), func(f *function) bool { return f.Package != name }),
		}))
		at := dir
		if name != "main" {
			at = filepath.Join(dir, name)
			harness.Check(t, os.Mkdir(at, 0o755))
		}
		harness.Check(t, os.WriteFile(filepath.Join(at, name+".go"), out.Bytes(), 0o600))
	}
	harness.Check(t, os.Mkdir(filepath.Join(dir, "lost"), 0o755))
	for from, to := range map[string]string{"lost.tmpl": "lost/lost.go", "server.tmpl": "server.go"} {
		harness.Check(t, os.WriteFile(filepath.Join(dir, to), harness.Must(os.ReadFile("testdata/"+from))(t), 0o600))
	}
	harness.Check(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.test/lossy\n\ngo 1.24\n"), 0o600))
	build := exec.Command("go", append(append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", "lossy"}, flags...), ".")...)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return harness.Must(os.ReadFile(filepath.Join(dir, "lossy")))(t)
}

// asking are the functions in which the program's plugin calls its agent.
var asking = map[string]string{"agent": "main.ask", "agent over http": "main.post"}

// ofPeer are functions of the program's slow peer.
var ofPeer = []string{"answer", "peer"}

// functionIn finds the innermost function that a verdict names.
var functionIn = regexp.MustCompile(`, (possibly in|in|from) (?:[^,;()]* > )?(\w+)(?: \(\w+\.go(?::\d+)?\))?`)

// Time lost at random points of an agent or plugin has the right function, and no verdict names a wrong one as certain.
func TestRandomFunctions(t *testing.T) {
	points, dice := throw(t)
	all := drawn(dice)
	builds := map[string][]byte{"lossy-exec": lossy(t, all)}
	if points > fewPoints { // it builds the standard library again
		builds["lossy-pie"] = lossy(t, all, "-buildmode=pie")
	}
	s := set(t, rig.Options{Plugins: maps.Clone(builds)}, slowly)
	s.record()
	dir := t.TempDir()
	for name, binary := range builds {
		s.lossyAgent(dir, name, binary)
	}
	right, wrong := 0, 0
	for i := range points {
		f := all[dice.IntN(len(all))]
		names := slices.Sorted(maps.Keys(builds))
		name, kind := names[dice.IntN(len(names))], []string{"command", "unix", "tcp", "http", "sleep", "compute"}[dice.IntN(6)]
		in := []string{"agent", "agent over http", "plugin"}[dice.IntN(3)]
		s.prefix = fmt.Sprint("point-", i)
		s.network(s.prefix, rig.Use(rig.Conf{"type": name, "dir": filepath.Join(dir, name), "in": in, "at": f.Name, "kind": kind}))
		call := s.add(rig.PodOptions{}, false)
		verdict, says, certain := call.Attrs["cniscope.verdict"], "", false
		if m := functionIn.FindStringSubmatch(verdict); m != nil {
			says, certain = m[2], m[1] != "possibly in"
		}
		ok, bad := says == f.Name, certain && says != f.Name
		if in == "plugin" && slices.Contains(ofPeer, says) { // where the peer was is true, too
			ok, bad = false, false
		}
		for _, x := range slices.Concat(call.Below("command"), call.Below("agent"), call.Below("run")) {
			of := cmp.Or(x.Attrs["cniscope.agent"], x.Name)
			truth := map[string]string{"lossyd": f.full(), "slow-ctl": f.full()}
			truth[name+" ADD"] = cmp.Or(asking[in], f.full())
			if named := x.Attrs["code.function.name"]; named != "" && x.Took() > 1000 && truth[of] != "" {
				ok, bad = ok || named == f.full(), bad || named != truth[of]
				t.Logf("%s was in %s", of, named)
			}
		}
		if ok = ok && !bad; ok {
			right++
		}
		if bad {
			wrong++
		}
		t.Logf("%v %s %s in %s of %s: %q: %s", ok, name, kind, f.full(), in, says, verdict)
	}
	t.Logf("%d of %d functions are right, %d are wrong and said to be certain", right, points, wrong)
	if few := points < manyPoints; wrong > 0 || right < points-points/20 && !few || right == 0 {
		t.Errorf("%d of %d functions are right, %d are wrong and said to be certain", right, points, wrong)
	}
}

func (s *scene) lossyAgent(dir, name string, binary []byte) {
	s.Helper()
	at := filepath.Join(dir, name)
	harness.Check(s.T, os.Mkdir(at, 0o755))
	file := filepath.Join(at, "lossyd")
	harness.Check(s.T, os.WriteFile(file, binary, 0o755))
	cmd := exec.Command(file, at)
	cmd.Stderr = os.Stderr
	out := harness.Must(cmd.StdoutPipe())(s.T)
	harness.Beside(s, cmd)
	_, err := out.Read(make([]byte, 1)) // it serves
	harness.Check(s.T, err)
}
