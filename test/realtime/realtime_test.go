// Package realtime enforces that no test asserts a duration on the real clock, because a busy machine is slower.
// Simulated time (testing/synctest) is exempt. No test skips because of load, or tries again.
package realtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// subjects are packages about time (test/files: in its long form). `make check` and `make test` do not run them.
var subjects = []string{"test/bench", "test/soak", "test/tenants", "test/neighbours", "test/files"}

var observers = []string{"pkg/probe", "test"}

// simulated are files with simulated time without testing/synctest.
var simulated = []string{"pkg/probe/schedule_linux_test.go"}

// polls are files with loops that wait for a state without repeating an act, and files that `make test` and .ci/run
// do not run.
var polls = []string{
	"pkg/probe/helper_linux_test.go", "test/page/page_test.go", "pkg/windows/etw/session_windows_test.go", "test/cnis/truth_test.go", "test/kernels/kernels_test.go",
}

func TestNoTestAssertsADuration(t *testing.T) {
	const root = "../.."
	folders := map[string][]*ast.File{}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		folder = filepath.ToSlash(folder)
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") || slices.Contains(subjects, folder) || slices.Contains(simulated, folder+"/"+d.Name()) {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folders[folder] = append(folders[folder], file)
		for _, at := range lenient(file) {
			t.Errorf("%s: a busy machine skips the test; make it pass there, too", set.Position(at))
		}
		if !slices.Contains(polls, folder+"/"+d.Name()) {
			for _, at := range again(file) {
				t.Errorf("%s: the test tries again; make the first try succeed, or wait with harness.Eventually", set.Position(at))
			}
		}
		return nil
	})
	harness.Check(t, err)
	for folder, files := range folders {
		observes := slices.ContainsFunc(observers, func(o string) bool { return folder == o || strings.HasPrefix(folder, o+"/") })
		for _, at := range durations(files, observes) {
			t.Errorf("%s: a duration on the real clock is compared; wait for an event, use testing/synctest, or measure in make bench", set.Position(at))
		}
	}
}

// The cases are assertions of earlier tests, and code without an assertion.
func TestTheRuleFindsAssertions(t *testing.T) {
	for name, c := range map[string]struct {
		code  string
		finds int
	}{
		"at once":             {`func f() { if time.Since(a) > b { fail() } }`, 1},
		"by a variable":       {`func f() { took := time.Since(a); log(took); if took >= b { fail() } }`, 1},
		"in the condition":    {`func f() { if took := time.Since(a); took > 2*time.Second && load() <= 2 { fail() } }`, 1},
		"rounded":             {`func f() { took := time.Since(a).Round(time.Second); if d := took.Seconds(); d > 2 { fail() } }`, 1},
		"of two readings":     {`func f() { a := time.Now(); g(); b := time.Now(); if b.Sub(a) > c { fail() } }`, 1},
		"of now":              {`func f() { if time.Now().Sub(a) > c { fail() } }`, 1},
		"by a field":          {`func f() r { return r{took: time.Since(a)} }; func g(x r) { if x.took > b { fail() } }`, 1},
		"by an element":       {`func f() { times = append(times, time.Since(a)); if slices.Max(times) > b { fail() } }`, 1},
		"by a function":       {`func f() time.Duration { a := time.Now(); g(); return time.Since(a) }; func h() { if took := f(); took > b { fail() } }`, 1},
		"by two functions":    {`func f() time.Duration { return time.Since(a) }; func g() time.Duration { return f() }; func h() { if g() > b { fail() } }`, 1},
		"of the wall":         {`func f() { b := time.Now().UnixNano(); if time.Now().UnixNano()-b > c { fail() } }`, 1},
		"by the harness":      {`func f() { harness.Equal(t, time.Since(a), b) }`, 1},
		"of a deadline":       {`func f() { end := time.Now().Add(b); g(); if time.Now().After(end) { fail() } }`, 1},
		"until a deadline":    {`func f() { end := time.Now().Add(b); g(); if time.Until(end) < 0*time.Second { fail() } }`, 1},
		"by another clock":    {`func f() { a := clock.Monotonic(); g(); if clock.Monotonic()-a > b { fail() } }`, 1},
		"by a comparison":     {`func f() { if cmp.Compare(time.Since(a), b) > c { fail() } }`, 1},
		"by a timer":          {`func f() { select { case <-done: case <-time.After(2*time.Second): t.Fatal("slow") } }`, 1},
		"of a hang":           {`func f() { select { case <-done: case <-time.After(time.Minute): t.Fatal("hangs") } }`, 0},
		"in a bubble":         {`func f() { synctest.Test(t, func(t *testing.T) { if time.Since(a) != b { fail() } }) }`, 0},
		"beside a bubble":     {`func f() { synctest.Test(t, func(t *testing.T) {}); if time.Since(a) != b { fail() } }`, 1},
		"as a bound":          {`func f() { for time.Since(a) < b { g() } }`, 0},
		"in the log":          {`func f() { took := time.Since(a); log(took) }`, 0},
		"of events":           {`func f() { if e.End.Sub(e.Start) > c { fail() } }`, 0},
		"of real events":      {`func f() { if took := e.Time - e.Start; took < int64(time.Second) || took > int64(time.Minute) { fail() } }`, 1},
		"to nothing":          {`func f() { if time.Since(a) != 0 { fail() } }`, 0},
		"skipped by load":     {`func f() { if harness.Load() > 8 { t.Skip("busy") } }`, 1},
		"skipped by pressure": {`func f() { if b, _ := os.ReadFile("/proc/pressure/cpu"); full(b) { t.Skipf("%s", b) } }`, 1},
		"skipped by a cause":  {`func f() { if call.attrs["cniscope.cause"] == "cpu_starved" { t.SkipNow() } }`, 1},
		"left by load":        {`func f() { if harness.Load() > 8 { t.Log("busy"); return } }`, 1},
		"skipped in a switch": {`func f() { switch { case runtime.NumCPU() < 4: t.Skip("slow") } }`, 1},
		"skipped by a user":   {`func f() { if os.Geteuid() != 0 { t.Skip("needs root") } }`, 0},
		"three tries":         {`func f() { for range 3 { if run() == nil { return } }; fail() }`, 1},
		"counted tries":       {`func f() { for try := 0; try < most; try++ { if ok = run(); ok { break } } }`, 1},
		"tries by name":       {`func f() { for range tries { if err := run(); err == nil { return nil } } }`, 1},
		"tried until it is":   {`func f() { for i := 0; !ok && i < 3; i++ { ok = run() } }`, 1},
		"tried while it errs": {`func f() { for i := 0; i < 3 && err != nil; i++ { err = run() } }`, 1},
		"repeated":            {`func f() { for range 3 { if err := run(); err != nil { return err } } }`, 0},
		"a search":            {`func f() { for i := 0; i < len(all); i++ { if all[i] == x { return true } } }`, 0},
		"another of the name": {`func f() { took := time.Since(a); log(took) }; func g(took time.Duration) { if took > b { fail() } }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), name, "package p\n"+c.code, parser.SkipObjectResolution)
			harness.Check(t, err)
			found := slices.Concat(durations([]*ast.File{file}, true), lenient(file), again(file))
			harness.Equal(t, len(found), c.finds, "found")
		})
	}
}

// A command that repeats tests hides faults like a test that tries again.
func TestNoCommandRepeatsTests(t *testing.T) {
	const command = `(make|go test|\$\((MAKE|SUB|TESTS|PACKAGES)\))\b`
	repeats := regexp.MustCompile(`(?m)rerun-fails|\|\| *` + command + `|(^|[;&|(@\t':]) *(until|while) [^#\n]*` + command + `|` + command + `.*\bbreak\b|"\$@".*\|\| *"\$@"`)
	for _, pattern := range []string{"Makefile", "*/*/*.mk", "test/*.sh", ".ci/*", ".github/workflows/*"} {
		files := harness.Must(filepath.Glob("../../" + pattern))(t)
		for _, file := range files {
			text := harness.Must(os.ReadFile(file))(t)
			if found := repeats.Find(text); found != nil {
				t.Errorf("%s repeats tests: %s", file, found)
			}
		}
	}
}
