package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// platforms are two of the six of kubectl's plugin: each takes minutes to compile.
const platforms = "linux/amd64,windows/amd64"

var artifacts = []string{
	"checksums.txt",
	"checksums.txt.minisig",
	"cniscope-0.3.0.aarch64.rpm",
	"cniscope-0.3.0.tgz",
	"cniscope-0.3.0.x86_64.rpm",
	"cniscope_0.3.0_amd64.deb",
	"cniscope_0.3.0_arm64.deb",
	"cniscope_0.3.0_image.tar.gz",
	"cniscope_0.3.0_kubernetes.yaml",
	"cniscope_0.3.0_linux_amd64",
	"cniscope_0.3.0_linux_amd64.tar.gz",
	"cniscope_0.3.0_linux_arm64",
	"cniscope_0.3.0_linux_arm64.tar.gz",
	"cniscope_0.3.0_sbom.cdx.json",
	"kubectl-cniscope_0.3.0_krew.yaml",
	"kubectl-cniscope_0.3.0_linux_amd64.tar.gz",
	"kubectl-cniscope_0.3.0_sbom.cdx.json",
	"kubectl-cniscope_0.3.0_windows_amd64.zip",
	"release-notes.md",
}

// Two builds of a commit are equal, also from another path, home, time zone and language.
func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	from := sources(t)
	key := newKey(t)
	from.publish(t, key.public)
	one := from.clone(t, "one", "MINISIGN_KEY="+key.secret, "MINISIGN_PASSWORD="+key.password)
	one.git(t, "tag", version)
	home := t.TempDir()
	two := from.clone(t, "Zweiter Bau, ünïcode", "MINISIGN_KEY="+key.text(t), "MINISIGN_PASSWORD="+key.password,
		"HOME="+home, "GOPATH="+filepath.Join(home, "go"), "GOCACHE="+anotherCache(t),
		"TZ=Asia/Kathmandu", "LC_ALL=C.UTF-8", "LANG=de_DE.UTF-8", "USER=somebody", "TMPDIR="+t.TempDir(),
		"SOURCE_DATE_EPOCH=1", "CGO_ENABLED=1", "GOFLAGS=-tags=netgo", "GOAMD64=v3", "GOARM64=v8.5,lse", "GOOS=windows", "GOARCH=386",
		"GOEXPERIMENT=jsonv2", "GODEBUG=gctrace=0", "GZIP=-1")
	leaveBehind(t, two)

	said := make([]string, 2)
	build := func(i int, s tree, umask string) {
		cmd := s.command("sh", "-c", "umask "+umask+" && exec make --no-print-directory release VERSION="+version+" PLATFORMS="+platforms)
		out, err := cmd.CombinedOutput()
		if said[i] = string(out); err != nil {
			t.Errorf("%s: %v", s.dir, err)
		}
		t.Logf("%s", out)
	}
	var both sync.WaitGroup
	both.Go(func() { build(0, one, "022") })
	both.Go(func() { build(1, two, "077") })
	both.Wait()
	if t.Failed() {
		t.FailNow()
	}

	if got := one.inDist(t); len(got) != 1 || got[0] != version {
		t.Errorf("dist holds %q", got)
	}
	if got := two.inDist(t); len(got) != 1 || got[0] != version {
		t.Errorf("dist holds %q, and what was left behind has to be gone", got)
	}
	compare(t, one.path("dist", version), two.path("dist", version))
	says(t, said[0], "[ 1/", "programs", "linux/arm64", "SBOM", "signature", version+" is in ")
	if strings.Contains(said[0], "no tag") || !strings.Contains(said[1], "no tag "+version) {
		t.Error("a missing tag is said, and only that")
	}
	t.Run("verification", func(t *testing.T) { verify(t, one.path("dist", version), key) })
	t.Run("programs", func(t *testing.T) { examinePrograms(t, one) })
	t.Run("archives", func(t *testing.T) { examineArchives(t, one.path("dist", version)) })
	t.Run("SBOM", func(t *testing.T) { examineSBOM(t, one.path("dist", version)) })
}

func leaveBehind(t *testing.T, s tree) {
	t.Helper()
	harness.Check(t, os.MkdirAll(s.path("dist", "."+version+".building", "out"), 0o755))
	s.write(t, "dist/."+version+".building/out/checksums.txt", "half of it")
}

// anotherCache is a build cache under another path, empty with CNISCOPE_RELEASE_CACHE=cold.
func anotherCache(t *testing.T) string {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "cache")
	if os.Getenv("CNISCOPE_RELEASE_CACHE") == "cold" {
		return cache
	}
	shared := harness.Must(exec.Command("go", "env", "GOCACHE").Output())(t)
	harness.Check(t, os.Symlink(strings.TrimSpace(string(shared)), cache))
	return cache
}

func compare(t *testing.T, one, two string) {
	t.Helper()
	found := harness.Must(os.ReadDir(two))(t)
	var names []string
	for _, f := range found {
		names = append(names, f.Name())
	}
	if got, want := fmt.Sprint(names), fmt.Sprint(artifacts); got != want {
		t.Errorf("the release consists of\n%s, want\n%s", got, want)
	}
	for _, name := range names {
		if out, err := exec.Command("cmp", filepath.Join(one, name), filepath.Join(two, name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
		info := harness.Must(os.Stat(filepath.Join(two, name)))(t)
		harness.Equal(t, info.Mode(), 0o644, name, "has mode under a tight umask")
	}
	info := harness.Must(os.Stat(two))(t)
	harness.Equal(t, info.Mode().Perm(), 0o755, "the folder has mode", info.Mode(), "under a tight umask")
}

func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	harness.Says(t, text, parts...)
}
