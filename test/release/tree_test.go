// Package release builds a release in clones, and verifies it with independent programs.
package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// version is what the tests build; CHANGELOG.md has it.
const version, number = "v0.3.0", "0.3.0"

type tree struct {
	dir string
	env []string
}

// sources makes a repository of the files of the working tree, including uncommitted ones.
func sources(t *testing.T) tree {
	t.Helper()
	top := harness.Must(filepath.Abs("../.."))(t)
	s := tree{dir: filepath.Join(t.TempDir(), "sources"), env: environment(t)}
	harness.Check(t, os.Mkdir(s.dir, 0o755))
	list := exec.Command("sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp -a --parents -t "$1"`, "sh", s.dir)
	list.Dir = top
	if out, err := list.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.git(t, "init", "-q", "-b", "main")
	s.git(t, "add", "-A")
	s.commit(t, "as it is")
	return s
}

func (s tree) clone(t *testing.T, name string, env ...string) tree {
	t.Helper()
	c := tree{dir: filepath.Join(t.TempDir(), name), env: append(s.env[:len(s.env):len(s.env)], env...)}
	s.git(t, "clone", "-q", "--no-local", "--depth", "1", "file://"+s.dir, c.dir)
	return c
}

// environment is without the user's variables, except the module cache and proxy.
func environment(t *testing.T) []string {
	t.Helper()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2026-11-22T08:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2026-11-22T08:00:00Z",
	}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOMODCACHE", "GOCACHE", "GOTOOLCHAIN"} {
		value := harness.Must(exec.Command("go", "env", name).Output())(t)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (s tree) path(name ...string) string { return filepath.Join(append([]string{s.dir}, name...)...) }

func (s tree) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

func (s tree) git(t *testing.T, args ...string) {
	t.Helper()
	if out, err := s.command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (s tree) commit(t *testing.T, message string) {
	t.Helper()
	s.git(t, "commit", "-q", "-a", "-m", message)
}

func (s tree) write(t *testing.T, name, text string) {
	t.Helper()
	harness.Check(t, os.WriteFile(s.path(name), []byte(text), 0o644))
}

// publish commits a file as the key that users verify with, or none.
func (s tree) publish(t *testing.T, public string) {
	t.Helper()
	if public == "" {
		harness.Check(t, os.RemoveAll(s.path("configs/release/minisign.pub")))
	} else {
		s.write(t, "configs/release/minisign.pub", string(harness.Must(os.ReadFile(public))(t)))
	}
	s.git(t, "add", "-A")
	s.git(t, "commit", "-q", "--allow-empty", "-m", "a key")
}

func (s tree) make(args ...string) (printed string, err error) {
	return s.run("make", append([]string{"--no-print-directory", "release"}, args...)...)
}

func (s tree) release(version string, args ...string) (printed string, err error) {
	return s.run("bin/release", append([]string{"-version", version}, args...)...)
}

func (s tree) run(name string, args ...string) (printed string, err error) {
	out, err := s.command(name, args...).CombinedOutput()
	return string(out), err
}

func (s tree) builder(t *testing.T) {
	t.Helper()
	cmd := s.command("go", "build", "-trimpath", "-buildvcs=false", "-o", s.path("bin", "release"), ".")
	cmd.Dir = s.path("configs", "release")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (s tree) inDist(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(s.path("dist"))
	if !os.IsNotExist(err) {
		harness.Check(t, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
