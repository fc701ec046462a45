//go:build linux

package release

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatIsNoVersionIsRefused(t *testing.T) {
	s := sources(t)
	s.builder(t)
	for _, c := range []struct{ version, says string }{
		{"", "which version? Say VERSION=v1.2.3"},
		{"0.2.0", "the v is missing: VERSION=v0.2.0"},
		{"v0.2", "is not a version: say VERSION=v1.2.3"},
		{"v0.02.0", "is not a version"},
		{"v0.2.0.1", "is not a version"},
		{"v0.2.0+build", "is not a version"},
		{"V0.2.0", "is not a version"},
		{"latest", "is not a version"},
		{"v0.2.0 ", "is not a version"},
		{"v0.2.0/../../x", "is not a version"},
		{"v0.2.0'; touch injected; '", "is not a version"},
		{"v0.2.0-", "is not a version"},
		{"v9.9.9", "CHANGELOG.md does not have 9.9.9: put ## [9.9.9] - YYYY-MM-DD"},
		{"v0.2.0-rc.1", "CHANGELOG.md does not have 0.2.0-rc.1"},
	} {
		out, err := s.release(c.version)
		if err == nil {
			t.Errorf("%q is built", c.version)
		}
		says(t, out, "release: ", c.says)
	}
	for _, by := range []string{"", "v0.2.0'; touch injected; '", "v0.2.0$$(touch injected)", `v0.2.0"; touch injected; "`} {
		if out, err := s.make("VERSION=" + by); err == nil {
			t.Errorf("make: %q is built:\n%s", by, out)
		}
	}
	if _, err := os.Stat(s.path("injected")); err == nil || len(s.inDist(t)) > 0 {
		t.Error("something was written")
	}
}

// Changed files and a tag on another commit are refused: no one could reproduce the build.
func TestWhatNobodyElseCouldBuildIsRefused(t *testing.T) {
	s := sources(t)
	s.builder(t)
	s.write(t, "cni.txt", "not in any commit")
	s.write(t, "LICENSE", "mine")
	out, err := s.release(version)
	if err == nil {
		t.Error("a changed tree is built")
	}
	says(t, out, "the tree has uncommitted changes", " M LICENSE", "?? cni.txt", "DRAFT=1")
	harness.Check(t, os.Remove(s.path("cni.txt")))
	s.git(t, "tag", version)
	s.git(t, "checkout", "-q", "--", "LICENSE")
	s.write(t, ".git/info/exclude", "local.go\n")
	s.write(t, "plugin/cniscope/local.go", "package main\n\nfunc init() { println(`mine`) }\n")
	if out, err = s.release(version); err == nil {
		t.Error("a file that git was told to ignore is compiled in")
	}
	says(t, out, "!! plugin/cniscope/local.go")
	harness.Check(t, os.Remove(s.path("plugin/cniscope/local.go")))
	s.write(t, "LICENSE", "mine")
	s.commit(t, "another license")
	if out, err = s.release(version); err == nil {
		t.Error("a version of another commit is built")
	}
	says(t, out, "the tag "+version+" is commit ", "check that out")
	s.write(t, "CHANGELOG.md", "# Changelog\n\n## [0.4.0]\n\n- New.\n\n## [0.2.1] - 2026-12-01\n\n## [0.3.0] - 2026-11-22\n\nFirst.\n")
	s.commit(t, "a changelog")
	for version, what := range map[string]string{"v0.4.0": "with its day", "v0.2.1": "says nothing of 0.2.1"} {
		if out, err = s.release(version); err == nil {
			t.Errorf("%s is built", version)
		}
		says(t, out, what)
	}
	for env, what := range map[string]string{
		"MINISIGN_KEY=/nowhere":                "MINISIGN_KEY is neither a secret key nor the file of one",
		"MINISIGN_KEY=" + newKey(t).secret:     "the key has a password: give it as MINISIGN_PASSWORD",
		"MINISIGN_KEY=" + s.path("LICENSE"):    "MINISIGN_KEY is no secret key of minisign",
		"MINISIGN_KEY=untrusted comment: a\nb": "MINISIGN_KEY is no secret key of minisign",
	} {
		wrong := tree{dir: s.dir, env: slices.Concat(s.env, []string{env})}
		if out, err = wrong.release(version, "-draft"); err == nil {
			t.Errorf("%s: it is built", env)
		}
		says(t, out, what)
	}
	signer := newKey(t)
	signed := tree{dir: s.dir, env: slices.Concat(s.env, []string{"MINISIGN_KEY=" + signer.secret, "MINISIGN_PASSWORD=" + signer.password})}
	s.write(t, "CHANGELOG.md", "# Changelog\n\n## [0.2.2] - 2026-12-01\n\nFirst.\n")
	for public, what := range map[string]string{"": "is not there, so users could not verify", newKey(t).public: "is not the secret half of"} {
		signed.publish(t, public)
		if out, err = signed.release("v0.2.2"); err == nil {
			t.Errorf("with the public key %q it is signed", public)
		}
		says(t, out, "configs/release/minisign.pub", what)
	}
	if left := s.inDist(t); len(left) > 0 {
		t.Errorf("dist holds %q", left)
	}
}

// An interrupted build keeps the earlier result, without partial files. Two builds at once are refused.
func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	s := sources(t)
	s.builder(t)
	harness.Check(t, os.MkdirAll(s.path("dist", version), 0o755))
	s.write(t, "dist/"+version+"/checksums.txt", "of the build before")
	for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		cmd := s.command("bin/release", "-version", version)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		harness.Check(t, err)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		harness.Check(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.Contains(lines.Text(), "linux/amd64") {
		}
		if said, err := s.release(version); err == nil || !strings.Contains(said, "another build is writing") {
			t.Errorf("two builds at the same time: %v\n%s", err, said)
		}
		harness.Check(t, syscall.Kill(-cmd.Process.Pid, by))
		_, _ = io.Copy(io.Discard, out)
		err = cmd.Wait()
		left := s.inDist(t)
		if by == syscall.SIGKILL { // the next build removes it: TestTwoBuildsGiveTheSameBytes
			left = left[1:]
		} else {
			says(t, complaint.String(), "stopped; nothing was written to dist")
		}
		if err == nil || len(left) != 1 || left[0] != version {
			t.Errorf("%v: %v, dist holds %q", by, err, left)
		}
		text, err := os.ReadFile(s.path("dist", version, "checksums.txt"))
		if err != nil || string(text) != "of the build before" {
			t.Errorf("%v: the build before is now %q, %v", by, text, err)
		}
	}
}
