package release

import (
	"archive/tar"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// examinePrograms checks that each is static, for its architecture, and reports its commit.
func examinePrograms(t *testing.T, s tree) {
	head := harness.Must(s.command("git", "rev-parse", "HEAD").Output())(t)
	commit := strings.TrimSpace(string(head))
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		file := s.path("dist", version, "cniscope_"+number+"_linux_"+arch)
		f := harness.Must(elf.Open(file))(t)
		defer f.Close()
		harness.Equal(t, f.Machine, machine, file, "is for")
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is not static", file)
			}
		}
		if arch != runtime.GOARCH {
			continue
		}
		run := filepath.Join(t.TempDir(), "cniscope")
		data := harness.Must(os.ReadFile(file))(t)
		harness.Check(t, os.WriteFile(run, data, 0o755))
		out := harness.Must(exec.Command(run, "--version").Output())(t)
		says(t, string(out), "cniscope "+version+" linux/"+arch+" go", "commit "+commit[:12]+" of 2026-11-22T08:00:00Z")
		var known struct{ Version, Commit, Date string }
		out = harness.Must(exec.Command(run, "version", "--format", "json").Output())(t)
		harness.Check(t, json.Unmarshal(out, &known))
		if known.Version != version || known.Commit != commit || known.Date != "2026-11-22T08:00:00Z" {
			t.Errorf("%s", out)
		}
	}
}

// examineArchives checks that a tarball unpacks into one directory of root's with all files of a node.
func examineArchives(t *testing.T, dir string) {
	for _, arch := range []string{"amd64", "arm64"} {
		folder := "cniscope_" + number + "_linux_" + arch
		headers := tarball(t, filepath.Join(dir, folder+".tar.gz"))
		want := map[string]int64{
			"bin/cniscope": 0o755, "etc/cniscope/cniscope.toml": 0o600, "etc/systemd/system/cniscope.service": 0o644,
			"share/man/man1/cniscope.1": 0o644, "share/man/man1/cniscope-doctor.1": 0o644,
			"share/bash-completion/completions/cniscope": 0o644, "share/zsh/site-functions/_cniscope": 0o644,
			"share/fish/vendor_completions.d/cniscope.fish": 0o644,
			"LICENSE": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644, "THIRD-PARTY-NOTICES.txt": 0o644,
		}
		for _, h := range headers {
			name, below := strings.CutPrefix(h.Name, folder+"/")
			if !below || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.UTC().Format("2006-01-02T15:04") != "2026-11-22T08:00" {
				t.Errorf("%+v", h)
			}
			if mode, ok := want[name]; ok && mode != h.Mode {
				t.Errorf("%s has mode %o, want %o", name, h.Mode, mode)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%s lacks %v", folder, want)
		}
	}
}

func tarball(t *testing.T, file string) (headers []*tar.Header) {
	t.Helper()
	f := harness.Must(os.Open(file))(t)
	defer f.Close()
	zip := harness.Must(gzip.NewReader(f))(t)
	for a := tar.NewReader(zip); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		harness.Check(t, err)
		headers = append(headers, h)
	}
}
